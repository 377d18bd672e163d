// The health check of the container: asks `/healthz` of the server on the data folder. Plain JavaScript without packages, because it runs every few
// seconds. The server names its address, and its certificate if it has one, in the data folder.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const folder = process.env.SIGNALBOX_DATA_DIR ?? ".signalbox";
const TIMEOUT_MS = 4000;

try {
  const { url, certificate } = JSON.parse(readFileSync(join(folder, "server.json"), "utf8"));
  const { get } = await import(certificate === undefined ? "node:http" : "node:https");
  const request = get(`${url}/healthz`, {
    ca: certificate,
    allowPartialTrustChain: true,
    // Exactly this certificate is trusted, whatever name it is for.
    checkServerIdentity: () => undefined,
    timeout: TIMEOUT_MS,
  });
  request.on("timeout", () => request.destroy(new Error("no answer")));
  request.on("error", fail);
  request.on("response", (response) => {
    response.resume();
    if (response.statusCode !== 200) fail(new Error(`status ${response.statusCode}`));
  });
} catch (error) {
  fail(error);
}

function fail(error) {
  process.stderr.write(`not healthy: ${error.message}\n`);
  process.exitCode = 1;
}
