/**
 * The calls under way, for the service's stop.
 *
 * A list and not a `Set`: V8 replaces the table of a set that is added to and deleted from all the time every few dozen changes, and each
 * outgrown table points to its successor. Once one of them is among the old objects, everything that ever was in a later one outlives
 * the collections of young objects; that alone filled a hundred megabytes between two full collections.
 */
export interface Running {
  /** Where it stands in the list; the list's own. */
  place: number;
  cancel(): void;
}

export class RunningCalls {
  readonly #calls: Running[] = [];

  add(call: Running): void {
    call.place = this.#calls.length;
    this.#calls.push(call);
  }

  /** The last one takes the place that becomes free. */
  delete(call: Running): void {
    const last = this.#calls.pop();
    if (last === undefined || last === call) return;
    last.place = call.place;
    this.#calls[call.place] = last;
  }

  cancelAll(): void {
    // A copy: whoever is cancelled leaves the list.
    const calls = this.#calls.slice();
    for (const call of calls) call.cancel();
  }
}
