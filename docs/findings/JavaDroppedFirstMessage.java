import com.rabbitmq.stream.Environment;
import java.util.concurrent.CompletableFuture;

public class JavaDroppedFirstMessage {
  public static void main(String[] args) throws Exception {
    var broker = new FakeBroker("rabbitmq-stream");
    broker.call("create_stream", "{\"name\": \"orders\"}");
    for (String order : new String[] {"tea", "milk"}) {
      // a program that places one order and ends; then it runs once more
      try (var environment = Environment.builder().uri(broker.url).build();
          var producer = environment.producerBuilder().stream("orders").name("shop").build()) {
        var confirmed = new CompletableFuture<Boolean>();
        var message = producer.messageBuilder().addData(order.getBytes()).build();
        producer.send(message, status -> confirmed.complete(status.isConfirmed()));
        System.out.println(order + ": confirmed " + confirmed.get());
      }
    }
    int stored = broker.ask("messages", "name=orders").split("\"offset\"").length - 1;
    System.out.println("stored: " + stored);
  }
}
