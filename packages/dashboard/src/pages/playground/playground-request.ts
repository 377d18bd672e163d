/** The form of the playground and the request that it describes. */

export interface PlaygroundMessage {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export interface PlaygroundForm {
  readonly model: string;
  readonly system: string;
  readonly messages: readonly PlaygroundMessage[];
  /** Texts of number fields: empty means the default of the model. */
  readonly temperature: string;
  readonly maxTokens: string;
  readonly topP: string;
  readonly isStreamed: boolean;
  readonly skipsCache: boolean;
}

export const EMPTY_FORM: PlaygroundForm = {
  model: "echo/echo",
  system: "",
  messages: [{ role: "user", content: "Hello" }],
  temperature: "",
  maxTokens: "",
  topP: "",
  isStreamed: true,
  skipsCache: false,
};

export interface ChatBody {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly temperature?: number;
  readonly max_tokens?: number;
  readonly top_p?: number;
  readonly stream?: true;
}

/** The body in the format of OpenAI's chat completions, which the gateway translates for the model's provider. */
export function toChatBody(form: PlaygroundForm): ChatBody {
  const number = (text: string) => (text.trim() === "" ? undefined : Number(text));
  const temperature = number(form.temperature);
  const maxTokens = number(form.maxTokens);
  const topP = number(form.topP);
  return {
    model: form.model.trim(),
    messages: [...(form.system === "" ? [] : [{ role: "system", content: form.system }]), ...form.messages],
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(form.isStreamed ? { stream: true } : {}),
  };
}

/** Headers of the gateway that the form sets. */
export function toGatewayHeaders(form: PlaygroundForm): Record<string, string> {
  return form.skipsCache ? { "gw-aig-skip-cache": "true" } : {};
}
