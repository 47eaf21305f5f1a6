import com.rabbitmq.stream.AuthenticationFailureException;
import com.rabbitmq.stream.ResourceClosedException;
import com.rabbitmq.stream.StreamException;
import com.rabbitmq.stream.sasl.StreamSaslException;
import fakebrokers.kit.Failure;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What the library's exceptions mean. */
final class Errors {
  private static final int AUTHENTICATION_FAILURE = 8;
  private static final Set<Integer> AUTH_CODES = Set.of(7, 8, 9, 10, 11);

  /** Where the library has no exception for a response code, it stands in the text. */
  private static final Pattern CODE = Pattern.compile("response code[^:]*: (\\d+)");

  private Errors() {}

  static Failure classify(Throwable error) {
    if (error instanceof Failure failure) {
      return failure;
    }
    String text = error.toString();
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      Failure found = one(cause, text);
      if (found != null) {
        return found;
      }
    }
    return Failure.classify(error);
  }

  private static Failure one(Throwable error, String text) {
    if (error instanceof AuthenticationFailureException || error instanceof StreamSaslException) {
      return new Failure("auth", text, AUTHENTICATION_FAILURE);
    }
    if (error instanceof StreamException refused && refused.getCode() > 0) {
      return refused(refused.getCode(), text);
    }
    if (error instanceof ResourceClosedException) {
      return new Failure("closed", text).surely();
    }
    if (error.getMessage() != null) {
      Failure found = byText(error.getMessage(), text);
      if (found != null) {
        return found;
      }
    }
    if (error instanceof IllegalArgumentException) {
      return new Failure("invalid", text);
    }
    // the library keeps these two classes to itself
    return switch (error.getClass().getSimpleName()) {
      case "TimeoutStreamException" -> new Failure("timeout", text);
      case "ConnectionStreamException", "LocatorNotAvailableException", "ClientClosedException" ->
          new Failure("connection", text);
      default -> null;
    };
  }

  private static Failure byText(String message, String text) {
    Matcher told = CODE.matcher(message);
    if (told.find()) {
      return refused(Integer.parseInt(told.group(1)), text);
    }
    if (message.startsWith("Unable to agree on a SASL mechanism")) {
      return new Failure("auth", text);
    }
    if (message.startsWith("Waited for tune frame")) {
      return new Failure("timeout", text);
    }
    // what became of a Metadata request whose answer names no leader
    return message.startsWith("Not leader available") ? new Failure("refused", text) : null;
  }

  private static Failure refused(int code, String text) {
    return new Failure(AUTH_CODES.contains(code) ? "auth" : "refused", text, code);
  }
}
