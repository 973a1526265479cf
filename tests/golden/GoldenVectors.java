import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.SerializeType;
import @PROTOCOL@.header.CreateTopicRequestHeader;
import @PROTOCOL@.header.EndTransactionRequestHeader;
import @PROTOCOL@.header.QueryMessageRequestHeader;
import @PROTOCOL@.header.SendMessageRequestHeader;
import @PROTOCOL@.header.SendMessageRequestHeaderV2;
import @PROTOCOL@.header.SendMessageResponseHeader;
import @PROTOCOL@.header.UnregisterClientRequestHeader;
import @PROTOCOL@.header.namesrv.GetRouteInfoRequestHeader;
import @PROTOCOL@.heartbeat.HeartbeatData;
import @PROTOCOL@.heartbeat.ProducerData;

/**
 * Prints frames as Apache RocketMQ's own classes write them, one a line: name, header encoding, path, hex.
 * The path says which code wrote it: {@code encode} the one-piece encoder, {@code wire} the one that writes
 * to a socket. generate.sh puts the package of the protocol classes in place of its placeholder.
 */
public final class GoldenVectors {
    public static void main(String[] arguments) throws Exception {
        System.setProperty(RemotingCommand.REMOTING_VERSION_KEY, Integer.toString(MQVersion.CURRENT_VERSION));
        requests();
        responses();
        oddities();
    }

    private static void requests() throws Exception {
        print("route", () -> {
            GetRouteInfoRequestHeader header = new GetRouteInfoRequestHeader();
            header.setTopic("TopicTest");
            header.setAcceptStandardJsonOnly(true);
            return request(105, header, 1);
        });
        print("send_v1", () -> withBody(request(10, sendHeader(), 2), "hello \u4e16\u754c \ud83d\ude80"));
        print("send_v2", () -> withBody(sendV2(3), "hello \u4e16\u754c \ud83d\ude80"));
        print("heartbeat", () -> {
            ProducerData producer = new ProducerData();
            producer.setGroupName("producers");
            HeartbeatData heartbeat = new HeartbeatData();
            heartbeat.setClientID("127.0.0.1@1");
            heartbeat.getProducerDataSet().add(producer);
            RemotingCommand command = request(34, null, 4);
            command.setBody(heartbeat.encode());
            return command;
        });
        print("unregister", () -> {
            UnregisterClientRequestHeader header = new UnregisterClientRequestHeader();
            header.setClientID("127.0.0.1@1");
            header.setProducerGroup("producers");
            return request(35, header, 5);
        });
        print("create_topic", () -> {
            CreateTopicRequestHeader header = new CreateTopicRequestHeader();
            header.setTopic("TopicTest");
            header.setDefaultTopic("TBW102");
            header.setReadQueueNums(8);
            header.setWriteQueueNums(4);
            header.setPerm(6);
            header.setTopicFilterType("SINGLE_TAG");
            header.setTopicSysFlag(0);
            header.setOrder(false);
            return request(17, header, 6);
        });
        print("query", () -> {
            QueryMessageRequestHeader header = new QueryMessageRequestHeader();
            header.setTopic("TopicTest");
            header.setKey("order \"7\"");
            header.setMaxNum(32);
            header.setBeginTimestamp(-1L);
            header.setEndTimestamp(Long.MAX_VALUE);
            RemotingCommand command = request(12, header, 7);
            command.addExtField("_UNIQUE_KEY_QUERY", "true");
            return command;
        });
        print("end_transaction", () -> {
            EndTransactionRequestHeader header = new EndTransactionRequestHeader();
            header.setProducerGroup("producers");
            header.setTranStateTableOffset(5L);
            header.setCommitLogOffset(6L);
            header.setCommitOrRollback(8);
            header.setFromTransactionCheck(false);
            header.setMsgId("AC110001");
            header.setTransactionId("AC110002");
            RemotingCommand command = request(37, header, 8);
            command.markOnewayRPC();
            return command;
        });
    }

    private static void responses() throws Exception {
        print("send_response", () -> {
            RemotingCommand command = RemotingCommand.createResponseCommand(SendMessageResponseHeader.class);
            SendMessageResponseHeader header = (SendMessageResponseHeader) command.readCustomHeader();
            header.setMsgId("7F00000100002A9F0000000000000000");
            header.setQueueId(3);
            header.setQueueOffset(Long.MAX_VALUE);
            header.setTransactionId("AC110001");
            command.addExtField("MSG_REGION", "DefaultRegion");
            command.addExtField("TRACE_ON", "true");
            return answer(command, 0, null, 9);
        });
        print("success", () -> answer(RemotingCommand.createResponseCommand(null), 0, null, 10));
        print("busy", () -> answer(RemotingCommand.createResponseCommand(null), 2,
            "[TIMEOUT_CLEAN_QUEUE]broker busy", 11));
        print("unicode_remark", () -> answer(RemotingCommand.createResponseCommand(null), 1,
            "r\u00e9mark \u6807 \ud83d\ude80\n\t\"quoted\" \\ /", 12));
        print("response_body", () -> withBody(answer(RemotingCommand.createResponseCommand(null), 0, null, 13),
            "{\"brokerDatas\":[{\"brokerAddrs\":{0:\"127.0.0.1:10911\"}}]}"));
    }

    private static void oddities() throws Exception {
        print("empty", () -> request(34, null, 0));
        print("empty_fields", () -> withFields(request(34, null, 0), new HashMap<>()));
        print("raw_fields", () -> {
            Map<String, String> fields = new HashMap<>();
            fields.put("k\u00e9y", "v\"\\\n/\u2028");
            fields.put("empty", "");
            fields.put("null", null);
            fields.put("emoji", "\ud83d\ude80");
            fields.put("controls", controls());
            RemotingCommand command = withFields(request(10, null, -1), fields);
            command.setRemark("a request may have one too");
            return command;
        });
        print("opaque_min", () -> request(34, null, Integer.MIN_VALUE));
        print("opaque_max", () -> request(34, null, Integer.MAX_VALUE));
        print("flags", () -> {
            RemotingCommand command = request(34, null, 14);
            command.setFlag(Integer.MIN_VALUE | 2);
            return command;
        });
        print("large_code", () -> request(200050, null, 15));
        print("signed", () -> {
            // As the hook for access control does: the header's fields go into the map too, which has the
            // socket's path write them a second time.
            RemotingCommand command = sendV2(16);
            command.makeCustomHeaderToNet();
            command.addExtField("AccessKey", "access");
            command.addExtField("Signature", "LaFvs8ZmttDE4nOZYPB8+nLiOHA=");
            return withBody(command, "body");
        });
    }

    private static SendMessageRequestHeader sendHeader() {
        SendMessageRequestHeader header = new SendMessageRequestHeader();
        header.setProducerGroup("producers");
        header.setTopic("TopicTest");
        header.setDefaultTopic("TBW102");
        header.setDefaultTopicQueueNums(4);
        header.setQueueId(2);
        header.setSysFlag(0);
        header.setBornTimestamp(1700000000000L);
        header.setFlag(7);
        header.setProperties("KEYS\u0001k1\u0002TAGS\u0001\u6807\u7b7e\u0002");
        header.setReconsumeTimes(0);
        header.setUnitMode(false);
        header.setBatch(false);
        return header;
    }

    private static RemotingCommand sendV2(int opaque) {
        return request(310, SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(sendHeader()), opaque);
    }

    private static String controls() {
        StringBuilder controls = new StringBuilder();
        for (char character = 0; character < 0x20; character++) {
            controls.append(character);
        }
        for (char character = 0x7e; character <= 0xa1; character++) {
            controls.append(character);
        }
        return controls.toString();
    }

    private static RemotingCommand request(int code, CommandCustomHeader header, int opaque) {
        RemotingCommand command = RemotingCommand.createRequestCommand(code, header);
        command.setOpaque(opaque);
        return command;
    }

    private static RemotingCommand answer(RemotingCommand command, int code, String remark, int opaque) {
        command.setCode(code);
        command.setRemark(remark);
        command.setOpaque(opaque);
        return command;
    }

    private static RemotingCommand withBody(RemotingCommand command, String body) {
        command.setBody(body.getBytes(StandardCharsets.UTF_8));
        return command;
    }

    private static RemotingCommand withFields(RemotingCommand command, Map<String, String> fields) {
        command.setExtFields(new HashMap<>(fields));
        return command;
    }

    /** Each path gets a command of its own, since encoding changes it. */
    private static void print(String name, Supplier<RemotingCommand> command) throws Exception {
        for (SerializeType encoding : SerializeType.values()) {
            RemotingCommand whole = command.get();
            whole.setSerializeTypeCurrentRPC(encoding);
            ByteBuffer encoded = whole.encode();
            byte[] frame = new byte[encoded.remaining()];
            encoded.get(frame);
            printRow(name, encoding, "encode", frame);

            RemotingCommand split = command.get();
            split.setSerializeTypeCurrentRPC(encoding);
            ByteBuf wire = Unpooled.buffer();
            split.fastEncodeHeader(wire);
            if (split.getBody() != null) {
                wire.writeBytes(split.getBody());
            }
            frame = new byte[wire.readableBytes()];
            wire.readBytes(frame);
            printRow(name, encoding, "wire", frame);
        }
    }

    private static void printRow(String name, SerializeType encoding, String path, byte[] frame) {
        StringBuilder row = new StringBuilder(name + "\t" + encoding + "\t" + path + "\t");
        for (byte value : frame) {
            row.append(String.format("%02x", value));
        }
        System.out.println(row);
    }
}
