/**
 * Requests and method calls to instances, after the caller's access was checked. `LocalRequests` runs them on this node; in a cluster,
 * `remote/requests.ts` runs them at the owner of the instance.
 */
import { SignalboxError } from "@signalbox/protocol";
import { within } from "../../core/within.ts";
import type { HttpResponse } from "../../engines/http-server/index.ts";
import type { AdmissionAnswer } from "../api/admission.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { InstanceEnvironment } from "../instance/instance-environment.ts";
import { callMethod } from "../instance/method-call.ts";
import type { Access } from "./access.ts";
import { type CreationOptions, requireInstance } from "./creation.ts";

/** Runs requests where their instances are. */
export interface InstanceRequests {
  /** `response` belongs to the client, who may disconnect. */
  request(work: RequestWork, response: HttpResponse): Promise<RequestAnswer>;
  /** Resolves to the result as JSON. */
  call(work: CallWork): Promise<string | undefined>;
}

/** A request whose caller has access, without what the node of the caller alone knows. */
interface AdmittedWork {
  readonly target: { readonly definition: AgentDefinition; readonly name: string };
  readonly access: Pick<Access, "account" | "level" | "isStranger">;
}

export interface RequestWork extends AdmittedWork {
  readonly request: Request;
  /** Undefined for a method that has none. */
  readonly body: Uint8Array | undefined;
  /** What `authorize` found out about the caller. */
  readonly props: unknown;
  readonly label: string;
}

export interface RequestAnswer {
  readonly response: Response;
  /** Must be called when the response has been sent: its body may come from the agent's object. */
  readonly release: (() => void) | undefined;
}

export interface CallWork extends AdmittedWork {
  readonly method: string;
  readonly args: readonly unknown[];
  readonly origin: { readonly request: Request };
  readonly isConcurrent: boolean | undefined;
}

export interface LocalRequestsOptions extends CreationOptions {
  readonly environment: Pick<InstanceEnvironment, "envOf" | "clock">;
}

/** An `admitRequest` that never returns must not hold connections. */
const ADMISSION_TIMEOUT_MS = 10_000;
const NO_BODY = new Uint8Array();

export class LocalRequests implements InstanceRequests {
  readonly #options: LocalRequestsOptions;

  constructor(options: LocalRequestsOptions) {
    this.#options = options;
  }

  async request(work: RequestWork): Promise<RequestAnswer> {
    const options = this.#options;
    const { target, access, request, props, label } = work;
    // A caller with read access learns nothing about an instance that does not exist.
    if (access.level === "read") await requireInstance(options, target, access);
    const admission = admit(options, work);
    const refusal = admission instanceof Promise ? await admission : admission;
    if (refusal instanceof Response) return { response: refusal, release: undefined };
    if (access.level === "edit") {
      const created = requireInstance(options, target, access);
      if (created instanceof Promise) await created;
    }
    const instance = options.directory.get(target.definition, access.account, target.name);
    const requestContext = { props };
    const response = await instance.run({
      kind: "request",
      label,
      origin: { request },
      body: ({ agent }) => agent.onRequest(request, requestContext),
    });
    if (!(response instanceof Response)) {
      throw new SignalboxError("agent_failed", { message: "onRequest did not return a Response" });
    }
    return { response, release: response.body === null ? undefined : instance.hold() };
  }

  async call(work: CallWork): Promise<string | undefined> {
    const options = this.#options;
    const { target, access, method, args, origin, isConcurrent } = work;
    const created = requireInstance(options, target, access);
    if (created instanceof Promise) await created;
    const instance = options.directory.get(target.definition, access.account, target.name);
    return callMethod(instance, method, args, { origin, isConcurrent });
  }
}

/** Calls `admitRequest`, if the class has it. */
function admit(
  { environment }: LocalRequestsOptions,
  { target: { definition, name }, access: { account }, request, props, body }: RequestWork,
): AdmissionAnswer | Promise<AdmissionAnswer> {
  const { agentClass } = definition;
  if (agentClass.admitRequest === undefined) return undefined;
  const { clock } = environment;
  const answer = agentClass.admitRequest(request, {
    account,
    name,
    env: environment.envOf(account),
    props,
    body: body ?? NO_BODY,
    now: clock.now(),
  });
  if (!(answer instanceof Promise)) return answer;
  return within(answer, ADMISSION_TIMEOUT_MS, () => new SignalboxError("agent_turn_timeout"));
}
