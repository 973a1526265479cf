import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Takes the options of "bench client" and prints its line: asynchronous sends in a closed loop, where each callback
 * makes the next send. The server is a name server.
 */
public class BenchProducer {
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    /** One request in so many is timed. */
    private static final int SAMPLED = 7;

    private final DefaultMQProducer producer = new DefaultMQProducer("bench-producers");
    private final byte[] body;
    private final AtomicLong answered = new AtomicLong();
    private final long[] times = new long[1 << 20];
    private final AtomicInteger timed = new AtomicInteger();
    private volatile boolean measuring;
    private volatile boolean stopped;

    private BenchProducer(String server, int bodyBytes) throws Exception {
        body = new byte[bodyBytes];
        Arrays.fill(body, (byte) '.');
        producer.setNamesrvAddr(server);
        producer.start();
    }

    public static void main(String[] args) {
        try {
            System.out.println(measured(options(args)));
        } catch (Throwable failure) {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
        System.out.flush();
        // A regular shutdown takes seconds, and the line is out.
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, String> options(String[] args) {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i + 1 < args.length; i += 2) {
            options.put(args[i], args[i + 1]);
        }
        if (number(options, "--connections", 1) != 1 || number(options, "--pending", 0) != 0) {
            throw new IllegalArgumentException("one connection, and nothing held back");
        }
        return options;
    }

    private static long number(Map<String, String> options, String name, long otherwise) {
        return Long.parseLong(options.getOrDefault(name, Long.toString(otherwise)));
    }

    private static String measured(Map<String, String> options) throws Exception {
        int inFlight = (int) number(options, "--in-flight", 256);
        int bodyBytes = (int) number(options, "--body", 1024);
        BenchProducer bench = new BenchProducer(options.get("--server"), bodyBytes);
        bench.producer.send(bench.message());
        String first = sinceStart();
        for (int i = 0; i < inFlight; i++) {
            bench.sendNext();
        }
        Thread.sleep(number(options, "--warm-up-ms", 5_000));
        bench.measuring = true;
        long requests = bench.answered.get();
        long cpu = SYSTEM.getProcessCpuTime();
        long started = System.nanoTime();
        Thread.sleep(number(options, "--millis", 700));
        requests = bench.answered.get() - requests;
        cpu = SYSTEM.getProcessCpuTime() - cpu;
        long wall = System.nanoTime() - started;
        bench.measuring = false;
        bench.stopped = true;
        long[] times = Arrays.copyOf(bench.times, Math.min(bench.timed.get(), bench.times.length));
        Arrays.sort(times);
        return String.format(
            "{\"client\":\"java\",\"in_flight\":%d,\"body\":%d,\"workers\":%d,\"requests\":%d,\"wall_ns\":%d,"
                + "\"cpu_ns\":%d,\"p50_ns\":%d,\"p99_ns\":%d,\"writes\":null,\"allocations\":null,\"threads\":%d,"
                + "\"peak_rss_bytes\":%d,\"first_ns\":%s}",
            inFlight, bodyBytes, Runtime.getRuntime().availableProcessors(), requests, wall, cpu,
            quantile(times, 50), quantile(times, 99), status("Threads:"), status("VmHWM:") * 1024, first);
    }

    private static long quantile(long[] times, int percent) {
        return times.length == 0 ? 0 : times[times.length * percent / 100];
    }

    /** A number of /proc/self/status, which counts all threads and not only those of Java. */
    private static long status(String name) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith(name)) {
                return Long.parseLong(line.substring(name.length()).trim().split(" ")[0]);
            }
        }
        throw new IllegalStateException(name);
    }

    /** Nanoseconds since the process was started, where its starter has said when that was. */
    private static String sinceStart() {
        String started = System.getenv("BENCH_STARTED_UNIX_NS");
        if (started == null) {
            return "null";
        }
        Instant now = Instant.now();
        long nanos = now.getEpochSecond() * 1_000_000_000L + now.getNano();
        return Long.toString(nanos - Long.parseLong(started));
    }

    private Message message() {
        return new Message("BenchTopic", body);
    }

    private void sendNext() {
        long started = System.nanoTime();
        SendCallback callback = new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                if (result.getSendStatus() != SendStatus.SEND_OK) {
                    onException(new IllegalStateException(result.toString()));
                }
                long count = answered.incrementAndGet();
                if (measuring && count % SAMPLED == 0) {
                    int place = timed.getAndIncrement();
                    if (place < times.length) {
                        times[place] = System.nanoTime() - started;
                    }
                }
                if (!stopped) {
                    sendNext();
                }
            }

            @Override
            public void onException(Throwable failure) {
                if (!stopped) {
                    failure.printStackTrace();
                    Runtime.getRuntime().halt(1);
                }
            }
        };
        try {
            producer.send(message(), callback);
        } catch (Exception failure) {
            callback.onException(failure);
        }
    }
}
