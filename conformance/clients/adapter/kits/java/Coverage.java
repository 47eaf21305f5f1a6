package fakebrokers.kit;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Writes down what has been executed since it was last called, where this process is measured: it has JaCoCo's agent,
 * and FAKEBROKERS_COVERAGE names a folder. Otherwise there is nothing to write.
 */
final class Coverage {
  private static final String FOLDER = System.getenv("FAKEBROKERS_COVERAGE");
  private static int files;

  private Coverage() {}

  static synchronized void write() {
    if (FOLDER == null) {
      return;
    }
    try {
      Object agent = Class.forName("org.jacoco.agent.rt.RT").getMethod("getAgent").invoke(null);
      Object data = Class.forName("org.jacoco.agent.rt.IAgent")
          .getMethod("getExecutionData", boolean.class)
          .invoke(agent, true); // and begin anew
      String name = String.format("%d-%06d.exec", ProcessHandle.current().pid(), ++files);
      Files.write(Path.of(FOLDER, name), (byte[]) data);
    } catch (ReflectiveOperationException | IOException problem) {
      System.err.println("what was executed cannot be written down: " + problem);
    }
  }
}
