/**
 * Which instance is meant, and the name of its database in the instance store.
 * See docs/decisions/0078.
 */
import { DEFAULT_ACCOUNT } from "../../core/default-account.ts";
import { SignalboxError } from "@signalbox/protocol";

export interface InstanceRef {
  /** Id of the account that owns the instance. */
  readonly account: string;
  /** Kebab-case name of the agent class. */
  readonly agent: string;
  readonly name: string;
}

/**
 * The text that identifies the instance in the store; the store names the file by its hash. Instances of the account `default` keep the text from
 * before instances belonged to accounts. An agent's name is never empty and contains no NUL, so that the two forms never collide.
 */
export function databaseName({ account, agent, name }: InstanceRef): string {
  return account === DEFAULT_ACCOUNT ? `${agent}\0${name}` : `\0${account}\0${agent}\0${name}`;
}

/** The instance of a name that `databaseName` has made. */
export function refOf(name: string): InstanceRef {
  const parts = name.split("\0");
  if (parts.length === 2) {
    const [agent = "", instance = ""] = parts;
    return { account: DEFAULT_ACCOUNT, agent, name: instance };
  }
  const [, account = "", agent = "", instance = ""] = parts;
  return { account, agent, name: instance };
}

export function keyOf({ account, agent, name }: InstanceRef): string {
  return `${account}/${agent}/${name}`;
}

/** Unicode code points. */
const MAX_CHARACTERS = 256;
// oxlint-disable-next-line no-control-regex -- the expression matches control characters on purpose
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Throws `agent_invalid_name` for a name that is empty, longer than 256 characters, not valid Unicode, or has a control character. */
export function checkInstanceName(name: string): string {
  if (name === "") throw invalid("the name is empty");
  if (name.length > 2 * MAX_CHARACTERS || Array.from(name).length > MAX_CHARACTERS) {
    throw invalid(`the name is longer than ${MAX_CHARACTERS} characters`);
  }
  if (CONTROL.test(name)) throw invalid("the name holds a control character");
  if (!name.isWellFormed()) throw invalid("the name is not valid Unicode");
  return name;
}

function invalid(reason: string): SignalboxError {
  return new SignalboxError("agent_invalid_name", { message: `Invalid instance name: ${reason}` });
}
