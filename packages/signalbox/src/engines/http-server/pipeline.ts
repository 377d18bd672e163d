/**
 * How many requests of a connection have no complete answer yet. A client may send requests without waiting for answers (RFC 9112, section
 * 9.3.2); one that sends them without reading the answers would fill the memory with what waits for it.
 */

/** Clients that pipeline at all have a few dozen requests under way. With more the connection is cut: each waiting answer takes 1 to 2 KB. */
export const MAX_UNANSWERED = 100;

export class Pipeline {
  unanswered = 0;
}

const pipelines = new WeakMap<object, Pipeline>();

export function pipelineOf(socket: object): Pipeline {
  let pipeline = pipelines.get(socket);
  if (pipeline === undefined) {
    pipeline = new Pipeline();
    pipelines.set(socket, pipeline);
  }
  return pipeline;
}
