/** One agent per device, which notices by itself that its device is silent, and one agent for the fleet, which pages watch. */
import { Agent, type AgentNamespace, callable, type WebhookEvent } from "signalbox";

export interface DeviceStatus {
  readonly name: string;
  readonly isOnline: boolean;
  /** ISO 8601. */
  readonly lastSeen: string;
  readonly temperature: number | null;
}

export interface FleetState {
  readonly devices: Readonly<Record<string, DeviceStatus>>;
  readonly online: number;
}

interface Environment {
  readonly Fleet: AgentNamespace<Fleet>;
}

/** A device reports every 20 s; three missing reports are an outage. */
export const SILENT_AFTER_S = 60;

export class Device extends Agent<Environment, DeviceStatus> {
  override initialState: DeviceStatus = { name: "", isOnline: false, lastSeen: "", temperature: null };

  override async onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS reading (at INTEGER PRIMARY KEY, temperature REAL NOT NULL)`;
    // Once a day, also if the device is silent and the service was restarted; an existing schedule is kept.
    await this.schedule("0 3 * * *", "forgetOld");
  }

  /** A report of the device. The reading, the state and the new alarm are one transaction. */
  async onEvent({ payload, timestamp }: WebhookEvent) {
    const { temperature } = payload as { temperature: number };
    this
      .sql`INSERT OR REPLACE INTO reading (at, temperature) VALUES (${Date.parse(timestamp)}, ${temperature})`;
    await this.#silentIn(SILENT_AFTER_S);
    await this.#become({ name: this.name, isOnline: true, lastSeen: timestamp, temperature });
  }

  /** Called by the schedule that every report sets again. */
  async silent() {
    await this.#become({ ...this.state, isOnline: false });
  }

  @callable({ description: "Lists the readings of the last hours." })
  readings(hours = 24) {
    return this.sql<{ at: number; temperature: number }>`
      SELECT at, temperature FROM reading WHERE at > ${Date.now() - hours * 3_600_000} ORDER BY at`;
  }

  forgetOld() {
    this.sql`DELETE FROM reading WHERE at < ${Date.now() - 30 * 24 * 3_600_000}`;
  }

  async #silentIn(seconds: number) {
    for (const { id, callback } of this.getSchedules()) {
      if (callback === "silent") await this.cancelSchedule(id);
    }
    await this.schedule(seconds, "silent");
  }

  /** The fleet learns every report; it stores only what its page shows. */
  async #become(status: DeviceStatus) {
    this.setState(status);
    await this.env.Fleet.getByName("all").report(status);
  }
}

export class Fleet extends Agent<Environment, FleetState> {
  override initialState: FleetState = { devices: {}, online: 0 };

  report(status: DeviceStatus) {
    const devices = { ...this.state.devices, [status.name]: status };
    const online = Object.values(devices).filter(({ isOnline }) => isOnline).length;
    this.setState({ devices, online });
  }
}
