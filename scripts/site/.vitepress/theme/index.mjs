import { useData } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { h, onMounted, ref, useId, watch } from "vue";
import "./style.css";

/** A diagram in the colours of the page, or its text until it is drawn. Mermaid itself is loaded only with a page that needs it. */
const Mermaid = {
  props: { text: { type: String, required: true } },
  setup({ text }) {
    const { isDark } = useData();
    const id = `mermaid-${useId()}`;
    const svg = ref("");
    const draw = async () => {
      const { default: mermaid } = await import("mermaid");
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? "dark" : "neutral" });
      svg.value = (await mermaid.render(id, text)).svg;
    };
    onMounted(draw);
    watch(isDark, draw);
    return () =>
      svg.value ? h("div", { class: "mermaid", innerHTML: svg.value }) : h("pre", { class: "mermaid" }, text);
  },
};

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => void app.component("Mermaid", Mermaid),
};
