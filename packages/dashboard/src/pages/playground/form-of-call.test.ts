import { expect, it } from "vitest";
import { formOfCall } from "./form-of-call.ts";
import { EMPTY_FORM } from "./playground-request.ts";

it("takes texts, numbers and streaming from the request of a call, in any dialect", () => {
  const messages = [
    {
      role: "user",
      content: [
        { type: "text", text: "Hello" },
        { type: "image_url", image_url: "x" },
      ],
    },
    { role: "assistant", content: "Hi" },
    { role: "user", content: "And now?" },
  ];
  const numbers = { temperature: 0.2, max_tokens: 50, stream: true };
  const chat = { messages: [{ role: "system", content: "Be brief." }, ...messages], ...numbers };
  const form = formOfCall("openai", "gpt-4o", JSON.stringify(chat));
  expect(form).toMatchObject({
    model: "openai/gpt-4o",
    system: "Be brief.",
    messages: [
      { role: "user", content: "Hello" },
      { role: "assistant", content: "Hi" },
      { role: "user", content: "And now?" },
    ],
    temperature: "0.2",
    maxTokens: "50",
    topP: "",
    isStreamed: true,
  });
  const anthropic = formOfCall(
    "anthropic",
    "m",
    JSON.stringify({ system: "Be brief.", messages, ...numbers }),
  );
  expect(anthropic).toEqual({ ...form, model: "anthropic/m" });
});

it("leaves the form empty for a request without texts, or of which only the beginning is stored", () => {
  for (const body of ["", '{"messages":[{"role":"us', '{"input":[]}'])
    expect(formOfCall("echo", "echo", body)).toEqual({ ...EMPTY_FORM, isStreamed: false });
});
