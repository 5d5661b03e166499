// Making programs of shaders, and giving them corners to draw.

/** Compile and link. Throws what the driver says where it cannot; a lost context is no reason. */
export function linked(
  gl: WebGL2RenderingContext,
  vertex: string,
  fragment: string,
): WebGLProgram {
  const program = gl.createProgram();
  for (const [type, source] of [
    [gl.VERTEX_SHADER, vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ] as const) {
    const shader = gl.createShader(type);
    if (shader === null) continue; // the context is lost
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    gl.deleteShader(shader); // with the program
  }
  gl.linkProgram(program);
  const isLinked = gl.getProgramParameter(program, gl.LINK_STATUS) as boolean;
  if (!isLinked && !gl.isContextLost())
    throw new Error(`shaders: ${gl.getProgramInfoLog(program)}`);
  return program;
}

/** Make and bind vertices whose `corner` goes through these points. */
export function withCorners(
  gl: WebGL2RenderingContext,
  program: WebGLProgram,
  points: readonly number[],
): WebGLVertexArrayObject {
  const vertices = gl.createVertexArray();
  gl.bindVertexArray(vertices);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(points), gl.STATIC_DRAW);
  const at = gl.getAttribLocation(program, "corner");
  gl.enableVertexAttribArray(at);
  gl.vertexAttribPointer(at, 2, gl.FLOAT, false, 0, 0);
  return vertices;
}
