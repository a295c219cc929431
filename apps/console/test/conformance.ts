import { Ajv2020 } from "ajv/dist/2020.js";

/** The parts of an OpenAPI document that the checks read. */
interface Document {
  paths: Record<string, Record<string, { responses: Record<string, unknown>; requestBody?: unknown }>>;
}

/** Checks calls of the API against its OpenAPI document: each answer, and each body that was accepted. */
export class Conformance {
  readonly #document: Document;
  readonly #ajv = new Ajv2020({ strict: false, validateSchema: false, validateFormats: false });

  constructor(document: object) {
    this.#document = document as Document;
    this.#ajv.addSchema(document, "openapi");
  }

  /** @param path below `/api/v1`, without query. @throws if the document does not describe the call like this */
  async check(method: string, path: string, sent: unknown, response: Response): Promise<void> {
    if (method === "HEAD") return;
    const call = `${method} ${path}: ${response.status}`;
    const text = isStream(response) ? "" : await response.clone().text();
    if (!response.ok) return this.#conforms(call, "components/responses/Error", JSON.parse(text));
    const [template, operation] = this.#operation(method, path);
    if (!operation?.responses[response.status]) throw new Error(`${call} is not in the OpenAPI document`);
    const at = `paths/${template!.replaceAll("/", "~1")}/${method.toLowerCase()}`;
    if (sent !== undefined && operation.requestBody) this.#conforms(call, `${at}/requestBody`, sent);
    if (text !== "") this.#conforms(call, `${at}/responses/${response.status}`, JSON.parse(text));
  }

  #operation(method: string, path: string) {
    const found = Object.entries(this.#document.paths).find(
      ([template, operations]) =>
        method.toLowerCase() in operations &&
        new RegExp(`^${template.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`).test(path),
    );
    return [found?.[0], found?.[1][method.toLowerCase()]] as const;
  }

  #conforms(call: string, at: string, body: unknown): void {
    const schema = `openapi#/${encodeURI(at)}/content/application~1json/schema`;
    const validate = this.#ajv.getSchema(schema);
    if (!validate) throw new Error(`${call}: the OpenAPI document has no schema for JSON`);
    if (validate(body)) return;
    const problems = this.#ajv.errorsText(validate.errors);
    throw new Error(`${call} is not as the OpenAPI document says: ${problems} in ${JSON.stringify(body)}`);
  }
}

function isStream(response: Response): boolean {
  return response.headers.get("content-type")?.startsWith("text/event-stream") === true;
}
