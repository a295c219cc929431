import { ReferenceType } from "typedoc";
import { MarkdownTheme } from "typedoc-plugin-markdown";

/** Leaves out what the code block of a signature already says, and headlines that clutter an outline. */
export class BriefTheme extends MarkdownTheme {
  /** @override */
  getRenderContext(page) {
    const context = super.getRenderContext(page);
    const { accessor, comment, declarationTitle, signature, signatureTitle } = context.partials;
    /** @type {Partial<typeof context.partials>} */
    const ours = {
      accessor: (model, options) => accessor(model, options).replace(/^#+ [GS]et Signature\n/gm, ""),
      comment: (model, options) => comment(model, { ...options, headingLevel: undefined, showReturns: true }),
      constructor: ({ signatures = [] }, { headingLevel }) =>
        signatures.map((one) => context.partials.signature(one, { headingLevel })).join("\n\n"),
      declarationTitle(model) {
        // The type of a schema is inferred and long, so it is left out.
        const { type } = model;
        if (type instanceof ReferenceType && type.package === "zod") type.typeArguments = undefined;
        return declarationTitle(model);
      },
      hierarchy: () => "",
      inheritance: () => "",
      signature(model, options) {
        const { parameters, typeParameters } = model;
        const title = options.hideTitle ? "" : signatureTitle(model, options);
        if (!parameters?.some((one) => one.hasComment())) model.parameters = undefined;
        model.typeParameters = undefined;
        const rest = signature(model, { ...options, hideTitle: true });
        Object.assign(model, { parameters, typeParameters });
        return `${title}\n\n${rest}`;
      },
      signatureReturns: () => "",
      /** Overloads share one description, unless theirs differ. */
      signatures({ signatures = [] }, { headingLevel }) {
        const options = { headingLevel, hideTitle: true, multipleSignatures: signatures.length > 1 };
        const rests = signatures.map((one) => context.partials.signature(one, options));
        return [...signatures.map((one) => signatureTitle(one, {})), ...new Set(rests)].join("\n\n");
      },
    };
    context.partials = { ...context.partials, ...ours };
    return context;
  }
}
