import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.OffsetSpecification;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

public class JavaCloseOfTheServer {
  public static void main(String[] args) throws Exception {
    var broker = new FakeBroker("rabbitmq-stream");
    broker.call("create_stream", "{\"name\": \"orders\"}");
    var got = new AtomicInteger();
    var environment = Environment.builder().uri(broker.url)
        .recoveryBackOffDelayPolicy(attempt -> Duration.ofMillis(200)).build();
    environment.consumerBuilder().stream("orders").offset(OffsetSpecification.first())
        .messageHandler((context, message) -> got.incrementAndGet()).build();
    broker.call("publish", "{\"name\": \"orders\", \"bodies\": [{\"base64\": \"AFN1oAN0ZWE=\"}]}");
    while (got.get() == 0) {
      Thread.sleep(20);
    }
    // c1 is the connection of the environment, c2 that of the consumer; as RabbitMQ 4.3 does for a frame that is too large
    for (String name : new String[] {"c1", "c2"}) {
      broker.call("say_close", "{\"connection\": \"" + name + "\", \"code\": 14, \"reason\": \"frame too large\"}");
    }
    Thread.sleep(3000);
    broker.call("publish", "{\"name\": \"orders\", \"bodies\": [{\"base64\": \"AFN1oAN0ZWE=\"}]}");
    Thread.sleep(1000);
    System.out.println("before the Close and after it one message each was sent; got: " + got);
    System.exit(0);
  }
}
