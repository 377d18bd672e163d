import { describe, expect, it } from "vitest";
import { editForm, formValues, inspectForm } from "./body-facts.ts";

const field = (name: string, value: string, more = "") =>
  `--b\r\ncontent-disposition: form-data; name="${name}"\r\n${more}\r\n${value}\r\n`;
const form = (...fields: string[]) => Buffer.from(`${fields.join("")}--b--\r\n`);

describe("a form", () => {
  it("has its model and the number of answers, wherever they stand", () => {
    const file = field("file", "x".repeat(5000), "content-type: audio/mpeg\r\n");
    const facts = inspectForm(form(file, field("n", "3"), field("model", "dall-e-2"), field("n", "2")));
    expect([facts.model, facts.choices]).toEqual(["dall-e-2", 3]);
    expect(inspectForm(form(field("n", "many"))).choices).toBe(1);
  });

  it("has all values of a name", () => {
    expect(formValues(form(field("model", "a"), field("model", "b")), "model")).toEqual(["a", "b"]);
  });

  it("keeps all bytes but those of the edited field", () => {
    const file = field("file", "ü\u0000name=model", "content-type: audio/mpeg\r\n");
    const edited = editForm(form(file, field("model", "openai/a"), file), "model", "grün");
    expect(edited.toString()).toBe(form(file, field("model", "grün"), file).toString());
  });

  it("with more fields than any API takes is not read", () => {
    const many = Array.from({ length: 1001 }, () => field("x", "y"));
    expect(inspectForm(form(field("model", "a"), ...many)).model).toBeNull();
  });
});
