/** Management of instances, wherever they run. */
import type { Route } from "../../http/route.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import { type InstanceRoute, type RefOf, toRoute } from "./instance-route.ts";
import { type FindPulses, findResidents, type FindResidents, type ResidentsParts } from "./residents.ts";
import { findStuck, type FindStuck } from "./stuck.ts";

/** Work on an instance. Input and result can be written as JSON. */
type Work<Input, Result> = (ref: InstanceRef, input: Input) => Promise<Result>;

export interface ManagementReach {
  readonly findResidents: FindResidents;
  readonly findStuck: FindStuck;
  readonly findPulses: FindPulses;
  /** The route with a handler that runs where the instance is. */
  atOwner(route: InstanceRoute, refOf: RefOf): Route;
  /** Returns a function that runs `work` where the instance is. The name is the same on all nodes. */
  workAtOwner<Input, Result>(
    name: string,
    work: Work<Input, Result>,
  ): (ref: InstanceRef, input: Input, signal: AbortSignal) => Promise<Result>;
}

/** All instances are in this process. */
export function manageHere(parts: ResidentsParts & { now(): number }): ManagementReach {
  return {
    findResidents: (query) => findResidents(parts, query),
    findStuck: async (query) => findStuck(parts, query),
    findPulses: async (account) => parts.pulses.read(account, parts.now()),
    atOwner: (route, refOf) => toRoute(route, refOf, (request) => route.handler(request)),
    workAtOwner: (_name, work) => work,
  };
}
