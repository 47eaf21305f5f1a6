import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.compression.Compression;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

public class JavaLostBatch {
  public static void main(String[] args) throws Exception {
    var broker = new FakeBroker("rabbitmq-stream");
    broker.call("create_stream", "{\"name\": \"orders\"}");
    var environment = Environment.builder().uri(broker.url).build();
    for (var orders : List.of(List.of("tea", "milk", "salt"), List.of("bread"))) {
      var sent = new CountDownLatch(orders.size());
      var producer = environment.producerBuilder().stream("orders")
          .subEntrySize(10).compression(Compression.GZIP).build();
      for (String order : orders) {
        producer.send(producer.messageBuilder().addData(order.getBytes()).build(), status -> sent.countDown());
      }
      sent.await();
      producer.close();
    }
    // one byte of the compressed data of the first batch is wrong, and the checksum right
    broker.call("faults", "{\"match\": {\"role\": \"deliver\", \"nth\": 1},"
        + " \"effect\": {\"type\": \"corrupt\", \"at\": -10, \"mend\": true}}");
    var got = new AtomicInteger();
    var states = new CopyOnWriteArrayList<>();
    environment.consumerBuilder().stream("orders").offset(OffsetSpecification.first())
        .listeners(context -> states.add(context.currentState()))
        .messageHandler((context, message) -> got.incrementAndGet()).build();
    while (states.size() < 2) {
      Thread.sleep(20);
    }
    Thread.sleep(1500);
    System.out.println("four messages are stored; the application has all of them: " + (got.get() == 4));
    System.out.println("it is notified: " + states);
    System.exit(0);
  }
}
