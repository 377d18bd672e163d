/**
 * Types drawn from an agent class, so that `AgentConnection<RepositoryAgent>` knows its state and methods. Only types cross over: a
 * page that imports the class with `import type` loads no server code. Without a type argument everything is `unknown`.
 */

// oxlint-disable-next-line typescript/no-explicit-any -- any function at all
type AnyFunction = (...args: any[]) => unknown;

/** What a streaming method gets as its first argument; the caller does not pass it. */
interface StreamArgument {
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever the agent sends
  send(...args: any[]): unknown;
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever the agent ends with
  end(...args: any[]): unknown;
}

type IsUntyped<Agent> = unknown extends Agent ? true : false;

export type StateOf<Agent> =
  IsUntyped<Agent> extends true ? unknown : Agent extends { state: infer State } ? State : unknown;

/** Names of methods that answer once. */
export type MethodName<Agent> =
  IsUntyped<Agent> extends true
    ? string
    : {
        [Name in keyof Agent & string]: Agent[Name] extends AnyFunction
          ? IsStreaming<Agent[Name]> extends true
            ? never
            : Name
          : never;
      }[keyof Agent & string];

/** Names of methods that answer piece by piece. */
export type StreamName<Agent> =
  IsUntyped<Agent> extends true
    ? string
    : {
        [Name in keyof Agent & string]: Agent[Name] extends AnyFunction
          ? IsStreaming<Agent[Name]> extends true
            ? Name
            : never
          : never;
      }[keyof Agent & string];

type IsStreaming<Method extends AnyFunction> =
  Parameters<Method> extends [infer First, ...unknown[]]
    ? IsAny<First> extends true
      ? false
      : [First] extends [StreamArgument]
        ? true
        : false
    : false;

type IsAny<Type> = 0 extends 1 & Type ? true : false;

export type ArgumentsOf<Agent, Name> = Name extends keyof Agent
  ? Agent[Name] extends AnyFunction
    ? IsStreaming<Agent[Name]> extends true
      ? Parameters<Agent[Name]> extends [unknown, ...infer Rest]
        ? Rest
        : never
      : Parameters<Agent[Name]>
    : never
  : unknown[];

export type ResultOf<Agent, Name> = Name extends keyof Agent
  ? Agent[Name] extends AnyFunction
    ? Awaited<ReturnType<Agent[Name]>>
    : never
  : unknown;

/** The agent's methods as local functions that return promises. */
export type AgentStub<Agent> =
  IsUntyped<Agent> extends true
    ? Readonly<Record<string, (...args: unknown[]) => Promise<unknown>>>
    : {
        readonly [Name in MethodName<Agent> & keyof Agent]: (
          ...args: ArgumentsOf<Agent, Name> & unknown[]
        ) => Promise<ResultOf<Agent, Name>>;
      };
