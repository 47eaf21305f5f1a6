import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

public class JavaBodyWithoutEnd {
  public static void main(String[] args) throws Exception {
    var broker = new FakeBroker("narconi");
    broker.call("put", "{\"project\": \"shop\", \"queue\": \"orders\", \"payload\": \"tea and milk\"}");
    // the head of the answer arrives, and its body does not
    broker.call("faults", "{\"match\": {\"direction\": \"out\", \"nth\": 1},"
        + " \"effect\": {\"type\": \"slice\", \"at\": -6, \"gap_s\": 60}}");
    var request = HttpRequest.newBuilder(URI.create(broker.url + "/projects/shop/queues/orders/messages"))
        .timeout(Duration.ofSeconds(5)).DELETE().build();
    var answer = HttpClient.newHttpClient().sendAsync(request, HttpResponse.BodyHandlers.ofString());
    try {
      System.out.println("it ends: " + answer.get(10, TimeUnit.SECONDS));
    } catch (TimeoutException error) {
      System.out.println("the request has a time-out of 5 s; after 10 s it has not ended");
    }
    System.exit(0);
  }
}
