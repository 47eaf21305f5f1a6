import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.OffsetSpecification;
import java.util.concurrent.atomic.AtomicInteger;

public class JavaTrackingChunks {
  public static void main(String[] args) throws Exception {
    var broker = new FakeBroker("rabbitmq-stream");
    broker.call("create_stream", "{\"name\": \"orders\"}");
    var message = "{\"name\": \"orders\", \"bodies\": [{\"base64\": \"AFN1oAN0ZWE=\"}]}";
    for (int number = 0; number < 30; number++) {
      broker.call("publish", message); // a chunk each
    }
    // twelve chunks are not for applications (type 1), and have to be passed over
    for (int number = 1; number <= 12; number++) {
      broker.call("faults", "{\"match\": {\"role\": \"deliver\", \"nth\": " + number + "}, \"effect\":"
          + " {\"type\": \"rewrite\", \"fields\": {\"chunk.chunk_type\": 1}}}");
    }
    var got = new AtomicInteger();
    var environment = Environment.builder().uri(broker.url).build();
    environment.consumerBuilder().stream("orders").offset(OffsetSpecification.first())
        .messageHandler((context, each) -> got.incrementAndGet()).build();
    Thread.sleep(2000);
    System.out.println("18 messages are for the application; got: " + got);
    System.exit(0);
  }
}
