import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A process that locks with Curator as the benchmark's runner commands. The Go
 * package worker documents the commands and the figures. All threads share one
 * client, and so one session, as Curator's users do.
 */
public class CuratorBench {
    private static final String ROOT = "/bench/curator/";
    private static final int NAMES = 8;
    private static final int PERMITS = 3;
    private static final int KEEP = 1 << 14;
    private static final int BEFORE = 4; // BEFORE and AFTER: see before and after in the Go package worker
    private static final int AFTER = 10;

    private final CuratorFramework client;
    private final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

    private CuratorBench(String hosts) throws Exception {
        client = CuratorFrameworkFactory.newClient(hosts, new ExponentialBackoffRetry(1000, 3)); // as in its documentation
        client.start();
        client.blockUntilConnected();
    }

    public static void main(String[] args) throws Exception {
        CuratorBench bench = new CuratorBench(args[0]);
        for (String line; (line = bench.in.readLine()) != null;) {
            try {
                say(bench.run(line.split(" ")));
            } catch (Exception e) {
                say("error " + String.valueOf(e).replace('\n', ' '));
            }
        }
        bench.client.close();
        System.exit(0);
    }

    private static void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    /** A thread that does cycles, and their times in nanoseconds. */
    private final class Person extends Thread {
        final String kind;
        final String names;
        final String prefix;
        final int index;
        final long length;
        final CountDownLatch warm;
        final CountDownLatch start;
        final long[] acquires = new long[KEEP];
        final long[] releases = new long[KEEP];
        long from = System.nanoTime(); // a cycle counts if it ends between from and to
        long to = from;
        int cycles;
        int total;
        Exception failure;

        Person(String[] words, int index, CountDownLatch warm, CountDownLatch start) {
            super(null, null, "person", 256 << 10);
            this.kind = words[1];
            this.names = words[3];
            this.prefix = words[4];
            this.length = words[0].equals("cycles") ? Long.parseLong(words[5]) * 1_000_000 : 0;
            this.index = index;
            this.warm = warm;
            this.start = start;
        }

        String name(int cycle) {
            switch (names) {
            case "own":
                return prefix + "-" + index;
            case "fresh":
                return prefix + "-" + index + "-" + Long.toString(ThreadLocalRandom.current().nextLong(Long.MAX_VALUE), 36) + "-" + cycle;
            default:
                return prefix;
            }
        }

        InterProcessLock lock(int cycle) {
            String path = ROOT + name(cycle);
            switch (kind) {
            case "mutex":
                return new InterProcessMutex(client, path);
            case "mixed":
                InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
                return (cycle + index) % 10 == 0 ? lock.writeLock() : lock.readLock();
            case "all":
                List<String> paths = new ArrayList<>();
                for (int i = 0; i < NAMES; i++) {
                    paths.add(path + "-" + i);
                }
                return new InterProcessMultiLock(client, paths);
            default:
                throw new IllegalArgumentException("this library does not support it: " + kind);
            }
        }

        void cycle(int cycle) throws Exception {
            InterProcessLock lock = lock(cycle);
            long t0 = System.nanoTime();
            lock.acquire();
            long t1 = System.nanoTime();
            lock.release();
            long t2 = System.nanoTime();
            total++;
            if (t2 - from < 0 || t2 - to >= 0) {
                return; // it does not count
            }
            acquires[cycles % KEEP] = t1 - t0;
            releases[cycles % KEEP] = t2 - t1;
            cycles++;
        }

        @Override
        public void run() {
            try {
                try {
                    if (length > 0) {
                        cycle(1);
                        total = 0;
                    }
                } finally {
                    warm.countDown();
                }
                start.await();
                if (length == 0) {
                    from = System.nanoTime();
                    to = from + 3_600_000_000_000L;
                    cycle(0);
                    return;
                }
                from = System.nanoTime() + length / BEFORE;
                to = from + length;
                long end = to + length / AFTER;
                for (int c = 0; System.nanoTime() - end < 0; c++) {
                    cycle(c);
                }
            } catch (Exception e) {
                failure = e;
            }
        }
    }

    /** The command load: callers that want one name, each for a limited time, and come again when refused. */
    private final class Load {
        final String kind;
        final String path;
        final long wait;
        final long work;
        final long step;
        final List<Thread> callers = new ArrayList<>();
        final AtomicLong failed = new AtomicLong();
        volatile long start; // 0 until the callers begin
        final AtomicLongArray grants;

        Load(String[] words) throws Exception {
            kind = words[1];
            path = ROOT + words[2];
            wait = Long.parseLong(words[3]);
            work = Long.parseLong(words[4]);
            step = Long.parseLong(words[5]);
            if (!kind.equals("mutex") && !kind.equals("semaphore")) {
                throw new IllegalArgumentException("this library does not support it: " + kind);
            }
            long from = 0;
            for (int i = 6; i < words.length; i++) {
                String[] phase = words[i].split("x");
                long begin = from;
                long end = from + Long.parseLong(phase[1]);
                for (int n = Integer.parseInt(phase[0]); n > 0; n--) {
                    callers.add(new Thread(null, () -> loop(begin, end), "caller", 256 << 10));
                }
                from = end;
            }
            grants = new AtomicLongArray((int) (from / step));
        }

        long now() {
            return (System.nanoTime() - start) / 1_000_000;
        }

        void loop(long begin, long end) {
            try {
                Thread.sleep(Math.max(0, begin - now()));
                while (now() < end) {
                    long t0 = now();
                    try {
                        call(wait);
                    } catch (Exception e) {
                        if (now() - t0 < wait * 9 / 10) {
                            failed.incrementAndGet();
                        }
                    }
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e); // no thread interrupts another one here
            }
        }

        void call(long limit) throws Exception {
            if (kind.equals("mutex")) {
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                if (mutex.acquire(limit, TimeUnit.MILLISECONDS)) {
                    try {
                        granted();
                    } finally {
                        mutex.release();
                    }
                }
                return;
            }
            InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, PERMITS);
            Lease lease = semaphore.acquire(limit, TimeUnit.MILLISECONDS);
            if (lease != null) {
                try {
                    granted();
                } finally {
                    semaphore.returnLease(lease);
                }
            }
        }

        void granted() throws InterruptedException {
            if (start == 0) {
                return; // the use before the callers begin
            }
            int i = (int) (now() / step);
            if (i < grants.length()) {
                grants.incrementAndGet(i);
            }
            Thread.sleep(work);
        }

        String run() throws Exception {
            call(60_000);
            say("ready");
            in.readLine(); // go
            start = System.nanoTime();
            for (Thread t : callers) {
                t.start();
            }
            for (Thread t : callers) {
                t.join();
            }
            StringBuilder answer = new StringBuilder("done failed=" + failed.get());
            for (int i = 0; i < grants.length(); i++) {
                answer.append(String.format(" grants%03d=%d", i, grants.get(i)));
            }
            return answer.toString();
        }
    }

    private String run(String[] words) throws Exception {
        if (words[0].equals("load")) {
            return new Load(words).run();
        }
        if (words[0].equals("versions")) {
            return "done curator";
        }
        if (words[0].equals("hold")) {
            new InterProcessMutex(client, ROOT + words[1]).acquire();
            return "done";
        }
        if (!words[0].equals("cycles") && !words[0].equals("once")) {
            return "error unknown command " + words[0];
        }
        int n = Integer.parseInt(words[2]);
        CountDownLatch warm = new CountDownLatch(n);
        CountDownLatch start = new CountDownLatch(1);
        List<Person> people = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            Person p = new Person(words, i, warm, start);
            people.add(p);
            p.start();
        }
        warm.await();
        say("ready");
        in.readLine(); // go
        long begin = System.nanoTime();
        start.countDown();
        for (Person p : people) {
            p.join();
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        if (people.get(0).length > 0) {
            seconds = people.get(0).length / 1e9;
        }
        long cycles = 0;
        long total = 0;
        for (Person p : people) {
            if (p.failure != null) {
                throw p.failure;
            }
            cycles += p.cycles;
            total += p.total;
        }
        return String.format("done acquire50=%.1f acquire99=%.1f acquireMax=%.1f cycles=%d release50=%.1f seconds=%.4f total=%d",
                quantile(people, false, .5), quantile(people, false, .99), quantile(people, false, 1), cycles,
                quantile(people, true, .5), seconds, total);
    }

    /** Returns a quantile of the times, in microseconds. */
    private static double quantile(List<Person> people, boolean releases, double q) {
        int n = 0;
        for (Person p : people) {
            n += Math.min(p.cycles, KEEP);
        }
        if (n == 0) {
            return 0;
        }
        long[] all = new long[n];
        int at = 0;
        for (Person p : people) {
            int m = Math.min(p.cycles, KEEP);
            System.arraycopy(releases ? p.releases : p.acquires, 0, all, at, m);
            at += m;
        }
        Arrays.sort(all);
        return all[Math.min(n - 1, (int) (q * n))] / 1e3;
    }
}
