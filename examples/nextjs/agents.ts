/** One instance per question: the votes, live on every open page. */
import { Agent, type AgentEnvironment, callable } from "signalbox";

export interface PollState {
  /** By option. */
  readonly votes: Readonly<Record<string, number>>;
}

export class Poll extends Agent<AgentEnvironment, PollState> {
  override initialState: PollState = { votes: { Pizza: 0, Ramen: 0, Salad: 0 } };

  /** The votes of all pages pass here one after the other, so none is lost. */
  @callable()
  vote(option: string): void {
    const { votes } = this.state;
    const before = votes[option];
    if (before === undefined) throw new Error(`${option} is not on the list`);
    this.setState({ votes: { ...votes, [option]: before + 1 } });
  }

  /** For callers without a connection, such as the server of the page. */
  @callable()
  result(): PollState {
    return this.state;
  }
}
