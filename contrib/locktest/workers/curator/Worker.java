import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * The worker of locktest for Apache Curator's InterProcessMutex.
 *
 * Curator's page "Shared Reentrant Lock" recommends, under "Error Handling", a
 * ConnectionStateListener that watches for SUSPENDED and LOST: after SUSPENDED the hold is not
 * certain, and after LOST it is gone. Its page "Error Handling" lets locks pause while SUSPENDED, and Tech
 * Note 14 recommends to leave all locks then. So a hold is lost with either, which are the errors of the
 * StandardConnectionStateErrorPolicy, too. After a pause of the process it takes a moment until the listener is
 * called: Tech Note 10 says that two clients believe then that they hold the lock. The page of the lock also
 * says that an instance is to be used again: there is one for each name, and the thread that acquires a lock
 * releases it. The retry policy is that of "Getting Started". Curator's lock has no fencing token.
 */
public class Worker {
    private static final Pattern FIELD = Pattern.compile("\"(op|id|name)\":\"?([^\",}]*)");
    private final CuratorFramework client;
    private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();
    private final Map<Integer, BlockingQueue<String>> inboxes = new ConcurrentHashMap<>();
    private final Map<Integer, String> held = new ConcurrentHashMap<>(); // changed while synchronized
    private boolean connected = true; // synchronized
    private int losses; // how often the session ended; synchronized

    private Worker(String servers, int ttl) throws Exception {
        // A tracker of the ensemble would replace the addresses that locktest gives, and so leave its proxies.
        client = CuratorFrameworkFactory.builder().connectString(servers).sessionTimeoutMs(ttl).connectionTimeoutMs(ttl)
                .retryPolicy(new ExponentialBackoffRetry(1000, 3)).ensembleTracker(false).build();
        client.getConnectionStateListenable().addListener((c, state) -> listen(state));
        client.start();
        client.blockUntilConnected();
    }

    public static void main(String[] args) throws Exception {
        Worker worker = new Worker(System.getenv("LOCKTEST_SERVERS"), millis(System.getenv("LOCKTEST_TTL")));
        answer("ready", 0, "", "");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            worker.request(line);
        }
        Runtime.getRuntime().halt(0); // the end of the input ends the worker at once
    }

    private synchronized void listen(ConnectionState state) {
        connected = state.isConnected();
        if (connected) {
            return;
        }
        losses += state == ConnectionState.LOST ? 1 : 0;
        held.forEach((id, name) -> answer("lost", id, name, ""));
        held.clear();
    }

    private synchronized int losses() {
        return losses;
    }

    /**
     * Notes and grants a hold, unless the session has ended since a count of losses, or the state is SUSPENDED. The
     * listener reports a loss of the hold after that.
     */
    private synchronized boolean hold(int id, String name, int before) {
        if (losses != before || !connected || !client.getZookeeperClient().isConnected()) {
            return false;
        }
        held.put(id, name);
        answer("granted", id, name, "");
        return true;
    }

    private void request(String line) throws InterruptedException {
        String op = "", name = "";
        int id = 0;
        for (Matcher m = FIELD.matcher(line); m.find();) {
            switch (m.group(1)) {
            case "op": op = m.group(2); break;
            case "id": id = Integer.parseInt(m.group(2)); break;
            default: name = m.group(2);
            }
        }
        if (!op.equals("acquire")) {
            inboxes.get(id).put(op);
            return;
        }
        BlockingQueue<String> inbox = new LinkedBlockingQueue<>();
        inboxes.put(id, inbox);
        int number = id;
        String lock = name;
        Thread thread = new Thread(() -> acquire(number, lock, inbox));
        thread.setDaemon(true);
        thread.start();
    }

    /** The life of an acquisition. */
    private void acquire(int id, String name, BlockingQueue<String> inbox) {
        InterProcessMutex mutex = mutexes.computeIfAbsent(name, n -> new InterProcessMutex(client, "/locktest-curator/" + n));
        boolean granted = false;
        try {
            for (int before = losses(); ; before = losses()) {
                mutex.acquire();
                if (hold(id, name, before)) {
                    break;
                }
                mutex.release(); // it is not certain that the lock is held
            }
            granted = true;
            while (inbox.take().equals("check")) {
                boolean holds = held.containsKey(id) && client.getZookeeperClient().isConnected();
                answer(holds ? "held" : "lost", id, name, "");
            }
            held.remove(id);
            mutex.release();
            inboxes.remove(id);
            answer("released", id, name, "");
        } catch (Exception e) {
            held.remove(id);
            inboxes.remove(id);
            answer("failed", id, name, (granted ? "release: " : "acquire: ") + e.getClass().getSimpleName());
        }
    }

    private static synchronized void answer(String op, int id, String name, String reason) {
        System.out.println("{\"op\":\"" + op + "\",\"id\":" + id + ",\"name\":\"" + name + "\",\"reason\":\"" + reason + "\"}");
        System.out.flush();
    }

    /** The milliseconds of a duration as Go writes it, such as 1m4.5s or 400ms. */
    private static int millis(String text) {
        double sum = 0;
        for (Matcher m = Pattern.compile("([0-9.]+)(ms|h|m|s)").matcher(text); m.find();) {
            sum += Double.parseDouble(m.group(1)) * Map.of("ms", 1, "s", 1000, "m", 60_000, "h", 3_600_000).get(m.group(2));
        }
        return (int) sum;
    }
}
