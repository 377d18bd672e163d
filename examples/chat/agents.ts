/** One instance per room: the conversation and a shopping list, live on every open page. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isStepCount, streamText, tool } from "ai";
import { Agent, type AgentEnvironment, callable, type StreamingResponse } from "signalbox";
import { z } from "zod";

export interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export interface ChatState {
  /** Oldest first. */
  readonly messages: readonly Message[];
  readonly list: readonly string[];
}

/** Messages that are kept, and sent to the model with each question. */
const KEPT = 50;
/** How often the model may use tools before it has to answer. */
const MAX_STEPS = 5;

export class Chat extends Agent<AgentEnvironment, ChatState> {
  override initialState: ChatState = { messages: [], list: [] };

  /**
   * Streams the answer to its caller. Other pages see the question at once and the answer when it is complete. Questions that arrive meanwhile wait:
   * the turns of an instance run one after the other.
   */
  @callable({ streaming: true })
  async ask(stream: StreamingResponse, question: string): Promise<void> {
    this.#add({ role: "user", content: question });
    const answer = streamText({
      model: this.#model(),
      instructions: "You are a friendly assistant that keeps a shopping list. Be brief.",
      messages: [...this.state.messages],
      tools: this.#tools(),
      stopWhen: isStepCount(MAX_STEPS),
      // The page was closed: the call ends, too.
      abortSignal: stream.signal,
    });
    let text = "";
    for await (const part of answer.stream) {
      if (part.type === "error") throw part.error;
      if (part.type !== "text-delta") continue;
      text += part.text;
      stream.send(part.text);
    }
    if (text !== "") this.#add({ role: "assistant", content: text });
  }

  /** A tool is a function. What it writes is stored, and shown on every page, before the model goes on. */
  #tools() {
    return {
      addItem: tool({
        description: "Adds an item to the shopping list.",
        inputSchema: z.object({ item: z.string() }),
        execute: ({ item }) => {
          this.setState({ ...this.state, list: [...this.state.list.filter((one) => one !== item), item] });
          return { list: this.state.list };
        },
      }),
      removeItem: tool({
        description: "Removes an item from the shopping list.",
        inputSchema: z.object({ item: z.string() }),
        execute: ({ item }) => {
          this.setState({ ...this.state, list: this.state.list.filter((one) => one !== item) });
          return { list: this.state.list };
        },
      }),
    };
  }

  /** The gateway of this service: limits, retries and the log of the call are its work. */
  #model() {
    const token = this.env["GATEWAY_TOKEN"];
    const gateway = createOpenAICompatible({
      name: "signalbox",
      baseURL: `${this.env["SIGNALBOX_URL"]}/v1`,
      ...(token === undefined ? {} : { apiKey: token }),
      headers: { "gw-aig-metadata": JSON.stringify({ room: this.name }) },
    });
    return gateway(this.env["MODEL"] ?? "demo/shopping");
  }

  #add(message: Message): void {
    this.setState({ ...this.state, messages: [...this.state.messages, message].slice(-KEPT) });
  }
}
