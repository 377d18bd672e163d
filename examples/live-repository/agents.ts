/** One instance of this agent for every repository: it keeps the repository's events and shows the newest to whoever watches. */
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

/** What fits on the page; the table behind `getEvents` keeps more. */
const SHOWN = 10;

export class RepositoryAgent extends WebhookAgent<AgentEnvironment, RepositoryState> {
  override initialState: RepositoryState = { lastEvent: null, eventCount: 0, recent: [], countByType: {} };

  /** Runs once for each delivery, however often GitHub sends it; the new state reaches every open page. */
  override onEvent({ id, type, title, actor, timestamp }: WebhookEvent): void {
    const { recent, countByType } = this.state;
    this.setState({
      ...this.state,
      recent: [{ id, type, title, actor, timestamp }, ...recent].slice(0, SHOWN),
      countByType: { ...countByType, [type]: (countByType[type] ?? 0) + 1 },
    });
  }
}
