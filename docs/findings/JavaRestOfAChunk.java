import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.OffsetSpecification;
import java.util.concurrent.CopyOnWriteArrayList;

public class JavaRestOfAChunk {
  public static void main(String[] args) throws Exception {
    var broker = new FakeBroker("rabbitmq-stream");
    broker.call("create_stream", "{\"name\": \"orders\"}");
    var order = "{\"base64\": \"AFN1oAN0ZWE=\"}";
    broker.call("publish", "{\"name\": \"orders\", \"bodies\": [" + (order + ",").repeat(9) + order + "]}"); // one chunk
    broker.call("publish", "{\"name\": \"orders\", \"bodies\": [" + order + "]}");
    var handled = new CopyOnWriteArrayList<Long>();
    var environment = Environment.builder().uri(broker.url).build();
    environment.consumerBuilder().stream("orders").offset(OffsetSpecification.first())
        .messageHandler((context, message) -> {
          if (context.offset() == 2) {
            throw new IllegalArgumentException("this one cannot be read");
          }
          handled.add(context.offset());
        }).build();
    while (!handled.contains(10L)) {
      Thread.sleep(20);
    }
    System.out.println("of 11 messages one cannot be read; handled: " + handled);
    System.exit(0);
  }
}
