import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingException;

/**
 * Dump NAME_SERVERS TOPIC: reads every queue of the topic from its first to its last offset with
 * Apache's own consumer and prints one JSON object a line for each message, queue by queue.
 */
public class Dump {
    private static final PrintStream OUT = new PrintStream(
        new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    public static void main(String[] args) {
        try {
            DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("dump");
            consumer.setNamesrvAddr(args[0]);
            consumer.start();
            for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(args[1])) {
                dump(consumer, queue);
            }
        } catch (Throwable failure) {
            // The client's threads would keep the process alive behind a main thread that has ended.
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
        OUT.flush();
        // A regular shutdown takes seconds and tells nobody anything.
        Runtime.getRuntime().halt(OUT.checkError() ? 1 : 0);
    }

    private static void dump(DefaultMQPullConsumer consumer, MessageQueue queue) throws Exception {
        long end = consumer.maxOffset(queue);
        for (long offset = consumer.minOffset(queue); offset < end; ) {
            PullResult result = pull(consumer, queue, offset);
            if (result.getNextBeginOffset() <= offset) {
                throw new IllegalStateException(queue + " stopped at " + offset + " of " + end + ": " + result);
            }
            if (result.getMsgFoundList() != null) {
                for (MessageExt message : result.getMsgFoundList()) {
                    OUT.println(json(message));
                }
            }
            offset = result.getNextBeginOffset();
        }
    }

    /** On a busy machine a pull may outlast the client's own timeout; reading again changes nothing. */
    private static PullResult pull(DefaultMQPullConsumer consumer, MessageQueue queue, long offset) throws Exception {
        for (int left = 10;; left--) {
            try {
                return consumer.pull(queue, "*", offset, 32);
            } catch (RemotingException failure) {
                if (left == 0) {
                    throw failure;
                }
            }
        }
    }

    private static String json(MessageExt message) throws Exception {
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        StringBuilder out = new StringBuilder("{");
        text(out, "topic", message.getTopic()).append(',');
        text(out, "broker", message.getBrokerName()).append(',');
        number(out, "queueId", message.getQueueId()).append(',');
        number(out, "queueOffset", message.getQueueOffset()).append(',');
        text(out, "msgId", message.getMsgId()).append(',');
        text(out, "keys", message.getKeys()).append(',');
        text(out, "tags", message.getTags()).append(',');
        number(out, "flag", message.getFlag()).append(',');
        number(out, "bodyLen", body.length).append(',');
        text(out, "bodySha256", sha256(body)).append(',');
        quote(out, "properties").append(":{");
        String separator = "";
        for (Map.Entry<String, String> property : new TreeMap<>(message.getProperties()).entrySet()) {
            out.append(separator);
            text(out, property.getKey(), property.getValue());
            separator = ",";
        }
        return out.append("}}").toString();
    }

    private static String sha256(byte[] bytes) throws Exception {
        StringBuilder hex = new StringBuilder();
        for (byte value : MessageDigest.getInstance("SHA-256").digest(bytes)) {
            hex.append(String.format("%02x", value));
        }
        return hex.toString();
    }

    private static StringBuilder text(StringBuilder out, String name, String value) {
        quote(out, name).append(':');
        return value == null ? out.append("null") : quote(out, value);
    }

    private static StringBuilder number(StringBuilder out, String name, long value) {
        return quote(out, name).append(':').append(value);
    }

    private static StringBuilder quote(StringBuilder out, String value) {
        out.append('"');
        for (char c : value.toCharArray()) {
            if (c < ' ' || c == '"' || c == '\\') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"');
    }
}
