/**
 * Loaded first in the process that `signalbox dev` starts: reports the files that it imports, so that those outside of the working folder are
 * watched, too. Registered before the loader of agents, it sees the outcome of every resolution, also of files that fail to load.
 */
import { registerHooks } from "node:module";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const OWN_SOURCE = join(import.meta.dirname, "../..") + sep;
const reported = new Set<string>();

function report(path: string): void {
  if (path.startsWith(OWN_SOURCE) || path.includes(`${sep}node_modules${sep}`) || reported.has(path)) return;
  reported.add(path);
  process.send?.({ file: path });
}

registerHooks({
  resolve(specifier, context, nextResolve) {
    try {
      const resolved = nextResolve(specifier, context);
      if (resolved.url.startsWith("file:")) report(fileURLToPath(resolved.url));
      return resolved;
    } catch (error) {
      // A file that does not exist yet.
      const parent = context.parentURL;
      if (specifier.startsWith(".") && parent?.startsWith("file:") === true)
        report(resolve(dirname(fileURLToPath(parent)), specifier));
      throw error;
    }
  },
});

// A killed `signalbox dev` must not leave a server behind that keeps the port.
process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
// The listener above would keep a process that could not start, and `dev` would not learn that it waits for a change.
process.channel?.unref();
