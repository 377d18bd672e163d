/**
 * The APIs of jobs: work that a provider does after it has answered the request that starts it. Each says which request starts a job, what the job may use,
 * where its state is, and what it has used when it has ended.
 */
import { type Fields, isFields } from "../../core/fields.ts";
import { NO_USAGE, readUsage, type Usage } from "../../engines/relay/index.ts";
import { ASSUMED_OUTPUT_TOKENS, BYTES_PER_TOKEN } from "../limits/estimate-usage.ts";

/** One call of a batch, one film, or one training. */
export interface JobItem {
  readonly model: string;
  readonly usage: Usage;
  /** The tokens of `usage` were trained with. */
  readonly isTraining?: boolean;
}

/** What a request says of the work: the items, or the files whose lines have them. */
export type JobDemand =
  | { readonly kind: "items"; readonly items: readonly JobItem[] }
  | {
      readonly kind: "files";
      readonly paths: readonly string[];
      readonly toItem: (line: Fields) => JobItem | null;
    };

/** What an ended job has used: the items, the files whose lines have them, or what its request asked for. */
export type JobResult =
  | { readonly kind: "reserved" }
  | { readonly kind: "items"; readonly items: readonly JobItem[] }
  | { readonly kind: "files"; readonly paths: readonly string[] };

export interface JobApi {
  readonly name: string;
  /** The path of the request that starts a job. */
  readonly path: RegExp;
  /** Null for a request that says nothing of its work. */
  demandOf(path: string, request: Fields): JobDemand | null;
  idOf(answer: Fields): string | null;
  statusPath(path: string, id: string): string;
  /** Null while the job runs. `model` is that of the request. */
  resultOf(path: string, id: string, status: Fields, model: string): JobResult | null;
  /** An item of a line of the result; null for a call that was not billed. */
  itemOf(line: Fields, model: string): JobItem | null;
}

const BATCH: Pick<Usage, "tier"> = { tier: "batch" };
const NOTHING: JobResult = { kind: "items", items: [] };

/** Ids and names of models. They become parts of paths. */
function text(value: unknown): string | null {
  return typeof value === "string" && /^[\w./:@-]{1,256}$/.test(value) && !value.includes("..")
    ? value
    : null;
}

function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

function fieldsIn(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter((one) => isFields(one)) : [];
}

/** A call of a batch before it runs. */
function expected(model: unknown, call: Fields, limit: unknown): JobItem {
  const choices = typeof call["n"] === "number" ? Math.max(1, call["n"]) : 1;
  const tokensOut = choices * (typeof limit === "number" ? limit : ASSUMED_OUTPUT_TOKENS);
  const tokensIn = Math.ceil(Buffer.byteLength(JSON.stringify(call)) / BYTES_PER_TOKEN);
  return { model: text(model) ?? "", usage: { ...NO_USAGE, ...BATCH, tokensIn, tokensOut } };
}

/** A call of a batch that has run. */
function used(answer: unknown, fallback: string): JobItem | null {
  const { usage, model } = readUsage(answer);
  return usage === null ? null : { model: model ?? fallback, usage: { ...usage, ...BATCH } };
}

const OPENAI_ENDED: ReadonlySet<unknown> = new Set(["completed", "failed", "expired", "cancelled"]);

const OPENAI_BATCH: JobApi = {
  name: "batch",
  path: /(?:^|\/)(?<!messages\/)batches$/,
  demandOf(path, request) {
    const file = text(request["input_file_id"]);
    if (file === null) return null;
    const toItem = ({ url, body: call }: Fields): JobItem | null => {
      if (!isFields(call)) return null;
      const limit = call["max_completion_tokens"] ?? call["max_output_tokens"] ?? call["max_tokens"];
      return expected(call["model"], call, String(url).endsWith("/embeddings") ? 0 : limit);
    };
    return { kind: "files", paths: [contentOf(path, file)], toItem };
  },
  idOf: ({ id }) => text(id),
  statusPath: (path, id) => `${path}/${id}`,
  resultOf(path, _id, { status, output_file_id: file }) {
    if (!OPENAI_ENDED.has(status)) return null;
    const output = text(file);
    return output === null ? NOTHING : { kind: "files", paths: [contentOf(path, output)] };
  },
  itemOf: (line, model) => used(fieldsOf(line["response"])["body"], model),
};

const ANTHROPIC_BATCH: JobApi = {
  name: "message_batch",
  path: /(?:^|\/)messages\/batches$/,
  demandOf: (_, request) => ({
    kind: "items",
    items: fieldsIn(request["requests"]).map((one) => {
      const call = fieldsOf(one["params"]);
      return expected(call["model"], call, call["max_tokens"]);
    }),
  }),
  idOf: ({ id }) => text(id),
  statusPath: (path, id) => `${path}/${id}`,
  resultOf: (path, id, { processing_status: state }) =>
    state === "ended" ? { kind: "files", paths: [`${path}/${id}/results`] } : null,
  itemOf: (line, model) => used(fieldsOf(line["result"])["message"], model),
};

const MISTRAL_ENDED: ReadonlySet<unknown> = new Set(["SUCCESS", "FAILED", "TIMEOUT_EXCEEDED", "CANCELLED"]);
/** Of a document whose pages are not known: the most that the API takes. */
const MAX_PAGES = 1000;

/** The model and the endpoint are those of the job; a line has the body of its call. */
const MISTRAL_BATCH: JobApi = {
  name: "mistral_batch",
  path: /(?:^|\/)batch\/jobs$/,
  demandOf(path, { model, endpoint, input_files: files, requests }) {
    const toItem = ({ body }: Fields): JobItem | null => {
      if (!isFields(body)) return null;
      const item = expected(
        model ?? body["model"],
        body,
        TOKENLESS.test(String(endpoint)) ? 0 : body["max_tokens"],
      );
      return String(endpoint).endsWith("/ocr")
        ? { ...item, usage: { ...NO_USAGE, ...BATCH, pages: MAX_PAGES } }
        : item;
    };
    const given = Array.isArray(files) ? files.map(text) : [];
    const paths = given.flatMap((file) => (file === null ? [] : [contentOf(path, file)]));
    if (given.length > 0) return paths.length === given.length ? { kind: "files", paths, toItem } : null;
    return { kind: "items", items: fieldsIn(requests).flatMap((line) => toItem(line) ?? []) };
  },
  idOf: ({ id }) => text(id),
  statusPath: (path, id) => `${path}/${id}`,
  resultOf(path, _id, { status, output_file: file, outputs }, model) {
    if (!MISTRAL_ENDED.has(status)) return null;
    const output = text(file);
    if (output !== null) return { kind: "files", paths: [contentOf(path, output)] };
    return { kind: "items", items: fieldsIn(outputs).flatMap((line) => mistralItem(line, model) ?? []) };
  },
  itemOf: mistralItem,
};

/** Endpoints whose answers have no tokens. */
const TOKENLESS = /\/(?:embeddings|moderations|classifications)$/;

function mistralItem(line: Fields, model: string): JobItem | null {
  return used(fieldsOf(line["response"])["body"], model);
}

const GEMINI_BATCH: JobApi = {
  name: "gemini_batch",
  path: /:batchGenerateContent$/,
  demandOf(path, request) {
    const batch = fieldsOf(request["batch"]);
    const input = fieldsOf(batch["inputConfig"] ?? batch["input_config"]);
    const model = modelIn(path);
    const toItem = (line: Fields) => {
      const call = fieldsOf(line["request"]);
      const config = fieldsOf(call["generationConfig"] ?? call["generation_config"]);
      return expected(model, call, config["maxOutputTokens"] ?? config["max_output_tokens"]);
    };
    const file = text(input["fileName"] ?? input["file_name"]);
    if (file !== null) return { kind: "files", paths: [downloadOf(file)], toItem };
    return { kind: "items", items: fieldsIn(fieldsOf(input["requests"])["requests"]).map(toItem) };
  },
  idOf: ({ name }) => text(name),
  statusPath: (_, id) => `v1beta/${id}`,
  resultOf(_path, _id, status, model) {
    if (status["done"] !== true) return null;
    const response = fieldsOf(status["response"]);
    const file = text(response["responsesFile"]);
    if (file !== null) return { kind: "files", paths: [downloadOf(file)] };
    const answers = fieldsIn(fieldsOf(response["inlinedResponses"])["inlinedResponses"]);
    return { kind: "items", items: answers.flatMap((one) => used(one["response"], model) ?? []) };
  },
  itemOf: (line, model) => used(line["response"], model),
};

/** Seconds and size that OpenAI assumes. */
const DEFAULT_SECONDS = 4;
const DEFAULT_SIZE = "720x1280";

const OPENAI_VIDEO: JobApi = {
  name: "video",
  path: /(?:^|\/)videos$/,
  demandOf: (_, request) => ({ kind: "items", items: [film(request)] }),
  idOf: ({ id }) => text(id),
  statusPath: (path, id) => `${path}/${id}`,
  resultOf(_path, _id, status, model) {
    if (status["status"] === "completed") {
      return { kind: "items", items: [film({ ...status, model: status["model"] ?? model })] };
    }
    return status["status"] === "failed" ? NOTHING : null;
  },
  itemOf: () => null,
};

/** A second of film is priced as a picture of its size. */
function film({ model, seconds, size }: Fields): JobItem {
  const images = Number(seconds ?? DEFAULT_SECONDS);
  const imageForm = `video ${text(size) ?? DEFAULT_SIZE}`;
  return {
    model: text(model) ?? "",
    usage: { ...NO_USAGE, images: Number.isFinite(images) ? images : DEFAULT_SECONDS, imageForm },
  };
}

/** Seconds of a film of Veo. */
const VEO_SECONDS = 8;

const VEO: JobApi = {
  name: "veo",
  path: /models\/veo-[^/]*:predictLongRunning$/,
  demandOf: (path, request) => ({ kind: "items", items: [films(modelIn(path), request)] }),
  idOf: ({ name }) => text(name),
  statusPath: (_, id) => `v1beta/${id}`,
  // The operation does not repeat the length: what was asked for is what is billed.
  resultOf: (_path, _id, status) =>
    status["done"] !== true ? null : status["error"] === undefined ? { kind: "reserved" } : NOTHING,
  itemOf: () => null,
};

function films(model: string, request: Fields): JobItem {
  const { durationSeconds: seconds, sampleCount: count } = fieldsOf(request["parameters"]);
  const each = typeof seconds === "number" ? seconds : VEO_SECONDS;
  const images = each * (typeof count === "number" ? count : 1);
  return { model, usage: { ...NO_USAGE, images, imageForm: "video" } };
}

/** OpenAI chooses about three; a small file is repeated more often. */
const ASSUMED_EPOCHS = 10;
const TRAINING_ENDED: ReadonlySet<unknown> = new Set(["succeeded", "failed", "cancelled"]);

const FINE_TUNING: JobApi = {
  name: "fine_tuning",
  path: /(?:^|\/)fine_tuning\/jobs$/,
  demandOf(path, request) {
    const file = text(request["training_file"]);
    if (file === null) return null;
    const method = fieldsOf(request["method"]);
    const chosen = fieldsOf(method[String(method["type"])])["hyperparameters"] ?? request["hyperparameters"];
    const epochs = fieldsOf(chosen)["n_epochs"];
    const times = typeof epochs === "number" ? epochs : ASSUMED_EPOCHS;
    const model = text(request["model"]) ?? "";
    const toItem = (line: Fields): JobItem => {
      const { usage } = expected(model, line, 0);
      return { model, usage: { ...usage, tier: "", tokensIn: usage.tokensIn * times }, isTraining: true };
    };
    return { kind: "files", paths: [contentOf(path, file)], toItem };
  },
  idOf: ({ id }) => text(id),
  statusPath: (path, id) => `${path}/${id}`,
  resultOf(_path, _id, { status, trained_tokens: tokens }, model) {
    if (!TRAINING_ENDED.has(status)) return null;
    if (typeof tokens !== "number") return NOTHING;
    return { kind: "items", items: [{ model, usage: { ...NO_USAGE, tokensIn: tokens }, isTraining: true }] };
  },
  itemOf: () => null,
};

export const JOB_APIS: readonly JobApi[] = [
  OPENAI_BATCH,
  ANTHROPIC_BATCH,
  MISTRAL_BATCH,
  GEMINI_BATCH,
  OPENAI_VIDEO,
  VEO,
  FINE_TUNING,
];

/** The API whose jobs a POST to this path starts. */
export function jobApiAt(path: string): JobApi | undefined {
  return JOB_APIS.find((api) => api.path.test(path));
}

/** The lines of a file, in the API that has `path`: below the same version. */
function contentOf(path: string, file: string): string {
  return path.replace(/(?:batches|batch\/jobs|fine_tuning\/jobs)$/, `files/${file}/content`);
}

function modelIn(path: string): string {
  return /models\/([^/:]+):/.exec(path)?.[1] ?? "";
}

function downloadOf(file: string): string {
  return `download/v1beta/${file}:download?alt=media`;
}
