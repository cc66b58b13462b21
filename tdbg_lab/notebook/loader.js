// The code of a live view in the browser: it fetches Plotly's own widget code, 5 MB, instead of carrying a
// copy of it in every widget and in every saved notebook. From the Jupyter server, which has it on its disk;
// where that has another version or is none of ours, from the kernel, once for each page.
const VERSION = '__VERSION__';

const loaded = (globalThis.tdbgPlotlyWidgets ??= new Map());

function widgetCode(model) {
  if (!loaded.has(VERSION)) {
    const loading = fromServer().catch(() => fromKernel(model));
    loaded.set(VERSION, loading);
    loading.catch(() => loaded.delete(VERSION));
  }
  return loaded.get(VERSION);
}

async function fromServer() {
  const config = document.getElementById('jupyter-config-data');
  const { baseUrl } = JSON.parse(config.textContent);
  const url = new URL(`${baseUrl}tdbg/plotly/${VERSION}.js`, location.href);
  return (await import(url.href)).default;
}

function fromKernel(model) {
  return new Promise((resolve, reject) => {
    const hear = (message, buffers) => {
      if (message?.tdbg !== 'widget-code') {
        return;
      }
      model.off('msg:custom', hear);
      const file = new Blob(buffers, { type: 'text/javascript' });
      import(URL.createObjectURL(file)).then(code => resolve(code.default), reject);
    };
    model.on('msg:custom', hear);
    model.send({ tdbg: 'widget-code' });
  });
}

// One for each widget: Plotly's code keeps what belongs to a widget between the two calls.
export default () => {
  let widget = null;
  const made = async model => {
    const code = await widgetCode(model);
    return typeof code === 'function' ? await code() : code;
  };
  return {
    async initialize(context) {
      widget ??= made(context.model);
      return (await widget).initialize?.(context);
    },
    async render(context) {
      widget ??= made(context.model);
      return (await widget).render(context);
    }
  };
};
