import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.OffsetSpecification;

public class JavaStoresZero {
  static Consumer consumer(Environment environment) {
    return environment.consumerBuilder().stream("orders").name("shop").singleActiveConsumer()
        .offset(OffsetSpecification.next()).manualTrackingStrategy().builder()
        .messageHandler((context, message) -> System.out.println("got " + context.offset())).build();
  }

  public static void main(String[] args) throws Exception {
    var broker = new FakeBroker("rabbitmq-stream");
    broker.call("create_stream", "{\"name\": \"orders\"}");
    var message = "{\"base64\": \"AFN1oAN0ZWE=\"}";
    broker.call("publish", "{\"name\": \"orders\", \"bodies\": [" + message + ", " + message + "]}");
    var environment = Environment.builder().uri(broker.url).build();
    var early = consumer(environment);
    Thread.sleep(3000); // only new messages are wanted, and there are none
    System.out.println("no offset was stored; the server has: " + early.storedOffset());
    early.close();
    consumer(environment);
    Thread.sleep(2000);
    System.out.println("no message is new");
    System.exit(0);
  }
}
