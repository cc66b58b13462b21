// A live view in the browser: Plotly draws the figure of the synchronised state, whenever that changes or
// the place for it does. Plotly's code, 5 MB, is fetched once for a page, not carried by every widget and
// every saved notebook: from the Jupyter server, which has it on its disk; where that has another version,
// or is none of ours, from the kernel.
const VERSION = '__VERSION__';

const CONFIG = {
  displaylogo: false,
  // Nothing leaves the user's machines.
  showSendToCloud: false,
  plotlyServerURL: ''
};

const loaded = (globalThis.tdbgPlotly ??= new Map());

function plotlyOf(model) {
  if (!loaded.has(VERSION)) {
    const loading = fromServer()
      .catch(() => fromKernel(model))
      .then(evaluated);
    loaded.set(VERSION, loading);
    loading.catch(() => loaded.delete(VERSION));
  }
  return loaded.get(VERSION);
}

async function fromServer() {
  const config = document.getElementById('jupyter-config-data');
  const { baseUrl } = JSON.parse(config.textContent);
  const answer = await fetch(`${baseUrl}tdbg/plotly/${VERSION}/plotly.min.js`);
  if (!answer.ok) {
    throw new Error(`The server has no Plotly ${VERSION}`);
  }
  return [await answer.arrayBuffer()];
}

function fromKernel(model) {
  return new Promise(resolve => {
    const hear = (message, buffers) => {
      if (message?.tdbg === 'plotly') {
        model.off('msg:custom', hear);
        resolve(buffers);
      }
    };
    model.on('msg:custom', hear);
    model.send({ tdbg: 'plotly' });
  });
}

/** Plotly's script as a module: it hands itself to `module`, and leaves the Plotly of the page as it is. */
async function evaluated(code) {
  const before = globalThis.Plotly;
  const file = new Blob(
    ['const module = { exports: {} };\n', ...code, '\nexport default module.exports;'],
    { type: 'text/javascript' }
  );
  const url = URL.createObjectURL(file);
  try {
    return (await import(url)).default;
  } finally {
    URL.revokeObjectURL(url);
    globalThis.Plotly = before;
  }
}

/** Draws the latest figure, one drawing at a time, and only while there is room for it. */
async function render({ model, el }) {
  const plotly = await plotlyOf(model);
  const plot = document.createElement('div');
  el.appendChild(plot);
  let isDrawing = false;
  let isAgain = false;
  const draw = async () => {
    isAgain = isDrawing;
    if (isDrawing || !el.clientWidth) {
      return;
    }
    isDrawing = true;
    try {
      // Plotly writes into what it is given.
      const { data, layout } = structuredClone(model.get('figure'));
      if (data.length) {
        const room = { width: el.clientWidth };
        await plotly.react(plot, data, { ...room, ...layout }, CONFIG);
      } else {
        plotly.purge(plot);
      }
    } catch (error) {
      console.error('The figure could not be drawn', error);
    } finally {
      isDrawing = false;
    }
    if (isAgain) {
      requestAnimationFrame(draw);
    }
  };
  model.on('change:figure', draw);
  const resized = new ResizeObserver(draw);
  resized.observe(el);
  return () => {
    resized.disconnect();
    model.off('change:figure', draw);
    plotly.purge(plot);
  };
}

export default { render };
