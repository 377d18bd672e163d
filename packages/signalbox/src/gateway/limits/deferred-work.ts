/**
 * Requests that start work whose answer does not contain it: the response only confirms the start, and the result is fetched later with a
 * request that costs nothing. What such work costs cannot be read from the response.
 */
import { readEachMember, type RequestBody } from "../../engines/relay/index.ts";
import type { Step } from "../step/step.ts";

/** Batches of OpenAI, Anthropic, Google and AWS, fine-tuning, runs of assistants, and videos. */
const JOBS =
  /(?:^|\/)(?:batches|batch\/jobs|batchPredictionJobs|model-invocation-jobs?|fine_tuning\/jobs|fine-tunes|threads\/runs|threads\/[^/]+\/runs|videos)$|:(?:batchGenerateContent|asyncBatchEmbedContent|predictLongRunning|batchPredict)$/i;

/** The number and size of the calls that the job makes are not in the request, or not where the gateway reads them. */
export function isJob({ requestType, path, upstream }: Step): boolean {
  return requestType === "" && upstream.method === "POST" && JOBS.test(path.replace(/\/+$/, ""));
}

/** A response of OpenAI that is written after the request has been answered. Not knowing counts as yes: usage in the answer decides. */
export function isBackground({ requestType, upstream: { body } }: Step): boolean {
  return requestType === "responses" && startsInBackground(body);
}

export function startsInBackground(body: RequestBody): boolean {
  if (body.kind === "none") return false;
  if (body.kind === "streamed") return true;
  const members = readEachMember(body.bytes, (name) => name.toLowerCase() === "background");
  return members === null || members.some(({ value }) => value !== false && value !== null);
}
