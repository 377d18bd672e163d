import {
  type AgentEnvironment,
  callable,
  WebhookAgent,
  type WebhookAgentState,
  type WebhookEvent,
} from "signalbox";

export interface DeviceState extends WebhookAgentState {
  readonly temperature: number | null;
  readonly status: "online" | "too hot" | "offline";
}

const HOT = 80;
/** A device that sends nothing for so long is offline. */
const SILENCE_SECONDS = 15 * 60;

/** One instance per device. It handles one event at a time, and its state survives restarts. */
export class DeviceAgent extends WebhookAgent<AgentEnvironment, DeviceState> {
  override initialState: DeviceState = {
    lastEvent: null,
    eventCount: 0,
    temperature: null,
    status: "offline",
  };

  /** Runs once per webhook, even if the sender repeats it. The new state is sent to all connected clients. */
  override async onEvent(event: WebhookEvent): Promise<void> {
    const { temperature } = event.payload as { temperature?: number };
    if (temperature === undefined) return;
    this.setState({ ...this.state, temperature, status: temperature >= HOT ? "too hot" : "online" });
    for (const { id } of this.getSchedules()) await this.cancelSchedule(id);
    await this.schedule(SILENCE_SECONDS, "markOffline");
  }

  /** Called by the schedule. */
  markOffline(): void {
    this.setState({ ...this.state, status: "offline" });
  }

  /** Called by clients: `npx signalbox agents call device-agent boiler-7 report`. */
  @callable()
  report(): string {
    const { status, temperature, eventCount } = this.state;
    return `${this.name} is ${status} (${temperature ?? "no"} degrees, ${eventCount} events)`;
  }
}
