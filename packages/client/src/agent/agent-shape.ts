/**
 * State and methods of an agent class as types, for `AgentConnection<RepositoryAgent>`. A page imports the class with `import type` and
 * loads no server code. Without a type argument, state and results are `unknown`.
 */

// oxlint-disable-next-line typescript/no-explicit-any -- matches every function
type AnyFunction = (...args: any[]) => unknown;

/** The first parameter of a streaming method, which the caller does not pass. */
interface StreamArgument {
  // oxlint-disable-next-line typescript/no-explicit-any -- the agent's type
  send(...args: any[]): unknown;
  // oxlint-disable-next-line typescript/no-explicit-any -- the agent's type
  end(...args: any[]): unknown;
}

type IsUntyped<Agent> = unknown extends Agent ? true : false;

export type StateOf<Agent> =
  IsUntyped<Agent> extends true ? unknown : Agent extends { state: infer State } ? State : unknown;

/** Names of methods with one result. */
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

/** Names of streaming methods. */
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

/** The agent's methods as functions that return promises. */
export type AgentStub<Agent> =
  IsUntyped<Agent> extends true
    ? Readonly<Record<string, (...args: unknown[]) => Promise<unknown>>>
    : {
        readonly [Name in MethodName<Agent> & keyof Agent]: (
          ...args: ArgumentsOf<Agent, Name> & unknown[]
        ) => Promise<ResultOf<Agent, Name>>;
      };
