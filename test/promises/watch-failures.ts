/** The part of `FAILURE_MODES` about the audit log, the log push, alerts, telemetry and realtime sessions. */
export const WATCH_FAILURES: Readonly<Record<string, readonly string[]>> = {
  "The process is killed while settings change": [
    "test/faults/audit-kill.test.ts › no change survives `kill -9` without its entry",
    "packages/signalbox/src/audit/audit-log.test.ts › a start turns every claim that was left behind into one entry without an outcome",
  ],
  "A node is killed while settings change": [
    "test/cluster/watching.long.test.ts › a killed node leaves no change without an entry; another node completes its claims",
  ],
  "The process is killed while it copies calls to a bucket": [
    "test/faults/log-push-kill.long.test.ts › no call is lost by `kill -9` before the object, the manifest or the position is stored",
  ],
  "A bucket refuses the log push": [
    "test/conformance/gateway-log-push.test.ts › a refused manifest repeats the calls, and nothing is lost over a restart",
    "test/conformance/gateway-log-push.test.ts › a wrong key is refused by the server, and the calls wait",
  ],
  "The process is killed while it sends the notice of an alert": [
    "test/faults/alerts-kill.test.ts › an alert that fired before `kill -9` is sent again with its id, stays firing, and fires no second time",
  ],
  "A receiver of notices fails": [
    "test/conformance/alerts.test.ts › a notice that fails is sent again with the same id, and a restart loses neither state nor notice",
  ],
  "A node is killed while it sends the notice of an alert": [
    "test/cluster/alerts.test.ts › a notice whose sender was killed is sent by another node, with the same id",
  ],
  "A receiver of telemetry fails or is too slow": [
    "test/conformance/otel.test.ts › counts what a receiver refuses as dropped, and serves calls all the same",
    "packages/signalbox/src/engines/otlp-export/otlp-export.test.ts › sends what is queued when it closes, and retries a receiver that is busy",
  ],
  "A side of a realtime session does not read": [
    "test/hostile/realtime.test.ts › a client that does not read stops the provider, and is dropped in time",
    "packages/signalbox/src/gateway/realtime/message-lane.test.ts › a side that does not read stops the other one, and a wait that ends meanwhile does not start it again",
  ],
  "The connection to the provider of a realtime session breaks": [
    "test/conformance/gateway-realtime-end.test.ts › a provider whose connection breaks ends the session with 1014",
  ],
};
