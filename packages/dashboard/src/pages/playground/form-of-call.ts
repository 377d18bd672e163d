/** The form of the playground for a stored call. */
import { requestMessages } from "../gateways/logs/message-parts.ts";
import { EMPTY_FORM, type PlaygroundForm, type PlaygroundMessage } from "./playground-request.ts";

/** `request` is the body in any dialect. Only texts are taken: the playground has no tools and no images. */
export function formOfCall(provider: string, model: string, request: string): PlaygroundForm {
  const messages = requestMessages(request).map(({ role, parts }) => ({
    role,
    content: parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n\n"),
  }));
  const isSystem = ({ role }: { readonly role: string }) => role === "system" || role === "developer";
  const own = messages
    .filter((message) => !isSystem(message) && message.content !== "")
    .map(({ role, content }): PlaygroundMessage => ({
      role: role === "assistant" || role === "model" ? "assistant" : "user",
      content,
    }));
  const body = membersOf(request);
  const number = (...names: string[]) => {
    const value = names.map((name) => body[name]).find((one) => typeof one === "number");
    return value === undefined ? "" : String(value);
  };
  return {
    ...EMPTY_FORM,
    model: `${provider}/${model}`,
    system: messages
      .filter(isSystem)
      .map(({ content }) => content)
      .join("\n\n"),
    messages: own.length === 0 ? EMPTY_FORM.messages : own,
    temperature: number("temperature"),
    maxTokens: number("max_tokens", "max_completion_tokens", "max_output_tokens"),
    topP: number("top_p"),
    isStreamed: body["stream"] === true,
  };
}

function membersOf(json: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    // A body of which only the beginning is stored.
    return {};
  }
}
