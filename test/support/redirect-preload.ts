/**
 * Sends outgoing connections of this process to other ports of loopback: SIGNALBOX_TEST_REDIRECTS is a JSON object from port to port. A test
 * puts a proxy between two nodes in this way; the nodes keep the addresses that they announce to each other.
 */
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import { isMainThread } from "node:worker_threads";

const redirects = JSON.parse(process.env["SIGNALBOX_TEST_REDIRECTS"] ?? "{}") as Record<string, number>;

if (isMainThread && Object.keys(redirects).length > 0) {
  const { connect } = net;
  const redirected = (...args: Parameters<typeof connect>) => {
    const [options, ...rest] = args as unknown as [{ port?: number }, ...unknown[]];
    const port = redirects[String(options.port)];
    const target = port === undefined ? options : { ...options, port };
    return (connect as (...all: unknown[]) => net.Socket)(target, ...rest);
  };
  Object.assign(net, { connect: redirected });
  syncBuiltinESMExports();
}
