/** The part of `FAILURE_MODES` about alerts, telemetry and realtime sessions. */
export const WATCH_FAILURES: Readonly<Record<string, readonly string[]>> = {
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
    "test/conformance/otel.test.ts › one service with an endpoint › counts what a receiver refuses as dropped, and serves calls all the same",
    "packages/signalbox/src/engines/otlp-export/otlp-export.test.ts › sends what is queued when it closes, and retries a receiver that is busy",
  ],
  "A side of a realtime session does not read": [
    "test/hostile/realtime.test.ts › peers that misbehave › a client that does not read stops the provider, and is dropped in time",
    "packages/signalbox/src/gateway/realtime/message-lane.test.ts › a side that does not read stops the other one, and a wait that ends meanwhile does not start it again",
  ],
  "The connection to the provider of a realtime session breaks": [
    "test/conformance/gateway-realtime.test.ts › the end › a provider whose connection breaks ends the session with 1014",
  ],
};
