package fakebrokers.kit;

import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedChannelException;
import java.util.Set;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLException;

/** How an op did not work out. The kinds are those of ADAPTER.md. */
public final class Failure extends RuntimeException {
  private static final Set<String> SURE = Set.of("auth", "invalid", "refused", "unsupported");

  private final String kind;
  private final Integer code;
  private boolean definite;

  public Failure(String kind, String text) {
    this(kind, text, null);
  }

  /**
   * As definite as its kind implies.
   *
   * @param code the number on the wire, where there is one
   */
  public Failure(String kind, String text, Integer code) {
    super(text);
    this.kind = kind;
    this.code = code;
    this.definite = SURE.contains(kind);
  }

  /** Says that the op had no effect and will have none, where its kind does not imply it. */
  public Failure surely() {
    definite = true;
    return this;
  }

  JsonObject report() {
    JsonObject report = new JsonObject();
    report.addProperty("kind", kind);
    report.addProperty("definite", definite);
    report.add("code", code == null ? JsonNull.INSTANCE : Kit.JSON.toJsonTree(code));
    report.addProperty("text", getMessage());
    return report;
  }

  /** The failure of what every library throws; the rest is internal until you say otherwise. */
  public static Failure classify(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof Failure failure) {
        return failure;
      }
      if (cause instanceof ConnectException) {
        return new Failure("connection", error.toString()).surely();
      }
      if (cause instanceof TimeoutException || cause instanceof SocketTimeoutException) {
        return new Failure("timeout", error.toString());
      }
      if (cause instanceof SocketException || cause instanceof ClosedChannelException
          || cause instanceof SSLException) {
        return new Failure("connection", error.toString());
      }
    }
    return new Failure("internal", error.toString());
  }
}
