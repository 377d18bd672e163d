/** Temperature and top_p, of which some models accept one or none. */
import type { NeutralRequest } from "./neutral/request.ts";
import type { EncodeEnvironment } from "./request-codec.ts";
import { sourceField } from "./source-fields.ts";

/** The default of every dialect: leaving it out says the same. */
const DEFAULT = 1;

export function encodeSampling(
  request: Pick<NeutralRequest, "temperature" | "topP">,
  { from, traits, losses }: EncodeEnvironment,
  temperatureField: string,
  topPField: string,
): Record<string, unknown> {
  const { temperature, topP } = request;
  const body: Record<string, unknown> = {};
  if (temperature !== null) {
    if (traits.sampling !== "none") body[temperatureField] = temperature;
    else if (temperature !== DEFAULT) losses.note(sourceField(from, "temperature"));
  }
  if (topP !== null) {
    const isTaken = traits.sampling === "both" || (traits.sampling === "one" && temperature === null);
    if (isTaken) body[topPField] = topP;
    else if (topP !== DEFAULT) losses.note(sourceField(from, "topP"));
  }
  return body;
}
