import { expectTypeOf, it } from "vitest";
import type { AgentConnection } from "./agent-connection.ts";
import type { AgentStub, ArgumentsOf, MethodName, ResultOf, StateOf, StreamName } from "./agent-shape.ts";

interface Stream {
  send(chunk: string): void;
  end(last?: number): void;
}

declare class Sample {
  state: { count: number };
  readonly name: string;
  add(by: number, note?: string): Promise<number>;
  ping(): void;
  // oxlint-disable-next-line typescript/no-explicit-any -- agents may use it
  loose(value: any): void;
  letters(stream: Stream, until: string): Promise<void>;
}

it("derives state, methods, arguments and results from an agent class", () => {
  expectTypeOf<StateOf<Sample>>().toEqualTypeOf<{ count: number }>();
  expectTypeOf<MethodName<Sample>>().toEqualTypeOf<"add" | "ping" | "loose">();
  expectTypeOf<StreamName<Sample>>().toEqualTypeOf<"letters">();
  expectTypeOf<ArgumentsOf<Sample, "add">>().toEqualTypeOf<[by: number, note?: string | undefined]>();
  expectTypeOf<ArgumentsOf<Sample, "letters">>().toEqualTypeOf<[until: string]>();
  expectTypeOf<ResultOf<Sample, "add">>().toEqualTypeOf<number>();
  expectTypeOf<AgentStub<Sample>["add"]>().returns.toEqualTypeOf<Promise<number>>();
  expectTypeOf<AgentConnection<Sample>["state"]>().toEqualTypeOf<{ count: number } | undefined>();
});

it("allows every name and argument if the agent has no type", () => {
  expectTypeOf<StateOf<unknown>>().toBeUnknown();
  expectTypeOf<MethodName<unknown>>().toEqualTypeOf<string>();
  expectTypeOf<ArgumentsOf<unknown, "anything">>().toEqualTypeOf<unknown[]>();
  expectTypeOf<ReturnType<AgentStub<unknown>["anything"]>>().toEqualTypeOf<Promise<unknown>>();
});
