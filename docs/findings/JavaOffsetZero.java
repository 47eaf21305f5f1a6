import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.OffsetSpecification;

public class JavaOffsetZero {
  public static void main(String[] args) throws Exception {
    var broker = new FakeBroker("rabbitmq-stream");
    broker.call("create_stream", "{\"name\": \"orders\"}");
    var message = "{\"base64\": \"AFN1oAN0ZWE=\"}";
    broker.call("publish", "{\"name\": \"orders\", \"bodies\": [" + message + ", " + message + "]}");
    // 0 was processed before the program was restarted
    broker.call("store_offset", "{\"name\": \"orders\", \"reference\": \"shop\", \"offset\": 0}");
    var environment = Environment.builder().uri(broker.url).build();
    environment.consumerBuilder().stream("orders").name("shop").offset(OffsetSpecification.next())
        .manualTrackingStrategy().builder()
        .messageHandler((context, each) -> System.out.println("got " + context.offset())).build();
    Thread.sleep(2000);
    System.out.println("that was all that comes after the stored offset 0");
    System.exit(0);
  }
}
