/** One instance per repository. It stores the repository's events and sends the newest to all connected pages. */
import { type AgentEnvironment, WebhookAgent, type WebhookAgentState, type WebhookEvent } from "signalbox";

export interface ShownEvent {
  readonly id: string;
  readonly type: string;
  readonly title: string;
  readonly actor: string | null;
  readonly timestamp: string;
}

export interface RepositoryState extends WebhookAgentState {
  /** Newest first. */
  readonly recent: readonly ShownEvent[];
  readonly countByType: Readonly<Record<string, number>>;
}

/** Number of events in the state; `getEvents` reads older events from the table. */
const SHOWN = 10;

export class RepositoryAgent extends WebhookAgent<AgentEnvironment, RepositoryState> {
  override initialState: RepositoryState = { lastEvent: null, eventCount: 0, recent: [], countByType: {} };

  /** Called once per delivery, even if GitHub sends it several times. The new state is sent to all open pages. */
  override onEvent({ id, type, title, actor, timestamp }: WebhookEvent): void {
    const { recent, countByType } = this.state;
    this.setState({
      ...this.state,
      recent: [{ id, type, title, actor, timestamp }, ...recent].slice(0, SHOWN),
      countByType: { ...countByType, [type]: (countByType[type] ?? 0) + 1 },
    });
  }
}
