import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;

/**
 * A process that acquires and releases Curator's locks and elections. It reads commands from
 * standard input; peer_test.go lists them. Everything runs in a single thread,
 * because a lock of Curator's belongs to the thread that acquired it.
 */
public class CuratorPeer {
    private final CuratorFramework client;
    private final String id;
    private Exclusion held;
    private CountDownLatch asked;
    private InterProcessReadWriteLock pair; // the lock of the newest writer

    private CuratorPeer(String hosts, String id) {
        this.id = id;
        client = CuratorFrameworkFactory.newClient(hosts, 10_000, 10_000, new RetryOneTime(100));
        client.start();
    }

    public static void main(String[] args) throws Exception {
        CuratorPeer peer = new CuratorPeer(args[0], args[1]);
        peer.client.blockUntilConnected();
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            try {
                say(peer.run(line.split(" ")));
            } catch (Exception e) {
                say("error " + e);
            }
        }
        System.exit(0); // the session ends with the process
    }

    private static void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    /** What Curator's locks and elections have in common. */
    private interface Exclusion {
        void acquire() throws Exception;

        void release() throws Exception;
    }

    private static Exclusion of(InterProcessMutex lock) {
        return new Exclusion() {
            public void acquire() throws Exception {
                lock.acquire();
            }

            public void release() throws Exception {
                lock.release();
            }
        };
    }

    private Exclusion latch(String path) {
        LeaderLatch latch = new LeaderLatch(client, path, id);
        return new Exclusion() {
            public void acquire() throws Exception {
                latch.start();
                latch.await();
            }

            public void release() throws Exception {
                latch.close();
            }
        };
    }

    /** A selector leads in a thread of its own, until release lets its listener return. */
    private Exclusion selector(String path) {
        CountDownLatch leads = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            public void takeLeadership(CuratorFramework c) throws Exception {
                leads.countDown();
                done.await();
            }
        });
        selector.setId(id);
        return new Exclusion() {
            public void acquire() throws Exception {
                selector.start();
                leads.await();
            }

            public void release() {
                done.countDown(); // a close would interrupt the thread, which has to delete its node
            }
        };
    }

    private InterProcessMutex mutex(String kind, String path) {
        switch (kind) {
        case "mutex":
            return new InterProcessMutex(client, path);
        case "read":
            return new InterProcessReadWriteLock(client, path).readLock();
        case "write":
            pair = new InterProcessReadWriteLock(client, path);
            return pair.writeLock();
        }
        return null;
    }

    private Exclusion lock(String kind, String path) {
        InterProcessMutex mutex = mutex(kind, path);
        if (mutex != null) {
            return of(mutex);
        }
        switch (kind) {
        case "latch":
            return latch(path);
        case "selector":
            return selector(path);
        }
        throw new IllegalArgumentException(kind);
    }

    private String run(String[] words) throws Exception {
        switch (words[0]) {
        case "acquire":
            held = lock(words[1], words[2]);
            held.acquire();
            return "held";
        case "try":
            InterProcessMutex tried = mutex(words[1], words[2]);
            held = of(tried);
            return tried.acquire(0, TimeUnit.MILLISECONDS) ? "held" : "refused";
        case "revocable":
            InterProcessMutex mutex = mutex(words[1], words[2]);
            CountDownLatch latch = new CountDownLatch(1);
            mutex.makeRevocable(lock -> latch.countDown());
            asked = latch;
            held = of(mutex);
            held.acquire();
            return "held";
        case "revoked":
            asked.await();
            return "revoked";
        case "revoke":
            Revoker.attemptRevoke(client, words[1]);
            return "asked";
        case "release":
            held.release();
            return "released";
        case "downgrade":
            pair.readLock().acquire();
            held.release();
            held = of(pair.readLock());
            return "downgraded";
        case "contend":
            for (int i = Integer.parseInt(words[3]); i > 0; i--) {
                Exclusion lock = lock(words[1], words[2]);
                lock.acquire();
                String seen = inside(words[1].equals("read"), words[4]);
                lock.release();
                if (seen != null) {
                    return "overlap " + seen;
                }
            }
            return "done";
        }
        throw new IllegalArgumentException(words[0]);
    }

    /** Returns the nodes of contenders that must not hold the lock now, or null. */
    private String inside(boolean shared, String guard) throws Exception {
        String mine = guard + "/" + (shared ? "reader-" + id : "writer");
        try {
            client.create().withMode(CreateMode.EPHEMERAL).forPath(mine);
        } catch (KeeperException.NodeExistsException e) {
            return mine;
        }
        List<String> there = client.getChildren().forPath(guard);
        client.delete().forPath(mine);
        if (shared ? there.contains("writer") : there.size() > 1) {
            return there.toString();
        }
        return null;
    }
}
