/** Arithmetic on typed arrays. A matrix is one array, row after row; sums are formed in double precision.
 *
 * Loops assign each variable separately: in Firefox destructuring allocates an array each time, and a beam search takes 1.7 times as long. */

/** Matrix-vector products of several rows at once: inputs (rows, columns) · weightᵀ + bias → (rows, outputs). */
export function linear(inputs: Float32Array, weight: Float32Array, bias: Float32Array | null, columns: number): Float32Array {
  const rows = inputs.length / columns;
  const outputs = weight.length / columns;
  const result = new Float32Array(rows * outputs);
  const converted = new Float64Array(inputs); // once here, instead of once per weight
  let row = 0;
  for (; row + 4 <= rows; row += 4) multiplyFourRows(converted, row, weight, bias, columns, result);
  for (; row < rows; row++) multiplyRow(converted, row, weight, bias, columns, result);
  return result;
}

/** Multiply four rows at once: each weight that is read is used for four sums. */
function multiplyFourRows(inputs: Float64Array, row: number, weight: Float32Array, bias: Float32Array | null, columns: number, result: Float32Array): void {
  const outputs = weight.length / columns;
  const [first, second, third, fourth] = [row * columns, (row + 1) * columns, (row + 2) * columns, (row + 3) * columns];
  for (let output = 0, from = 0; output < outputs; output++, from += columns) {
    let a = bias ? bias[output] : 0;
    let b = a;
    let c = a;
    let d = a;
    for (let i = 0; i < columns; i++) {
      const factor = weight[from + i];
      a += factor * inputs[first + i];
      b += factor * inputs[second + i];
      c += factor * inputs[third + i];
      d += factor * inputs[fourth + i];
    }
    const to = row * outputs + output;
    result[to] = a;
    result[to + outputs] = b;
    result[to + 2 * outputs] = c;
    result[to + 3 * outputs] = d;
  }
}

/** Multiply one row, with four partial sums, so that no addition waits for the one before. */
function multiplyRow(inputs: Float64Array, row: number, weight: Float32Array, bias: Float32Array | null, columns: number, result: Float32Array): void {
  const outputs = weight.length / columns;
  const start = row * columns;
  const inFours = columns - (columns % 4);
  for (let output = 0, from = 0; output < outputs; output++, from += columns) {
    let a = bias ? bias[output] : 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let i = 0; i < inFours; i += 4) {
      a += weight[from + i] * inputs[start + i];
      b += weight[from + i + 1] * inputs[start + i + 1];
      c += weight[from + i + 2] * inputs[start + i + 2];
      d += weight[from + i + 3] * inputs[start + i + 3];
    }
    for (let i = inFours; i < columns; i++) a += weight[from + i] * inputs[start + i];
    result[row * outputs + output] = a + b + c + d;
  }
}

/** The dot product of two slices of this length. */
export function dot(left: Float32Array, leftStart: number, right: Float32Array, rightStart: number, length: number): number {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += left[leftStart + i] * right[rightStart + i];
  return sum;
}

function maximum(values: Float32Array): number {
  let largest = -Infinity;
  for (let i = 0; i < values.length; i++) if (values[i] > largest) largest = values[i];
  return largest;
}

/** Replace scores by their softmax. */
export function softmax(scores: Float32Array): void {
  const largest = maximum(scores);
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += scores[i] = Math.exp(scores[i] - largest);
  for (let i = 0; i < scores.length; i++) scores[i] /= total;
}

/** Replace scores by the logarithm of their softmax. */
export function logSoftmax(scores: Float32Array): void {
  const largest = maximum(scores);
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += Math.exp(scores[i] - largest);
  const shift = largest + Math.log(total);
  for (let i = 0; i < scores.length; i++) scores[i] -= shift;
}

/** left + right. */
export function add(left: Float32Array, right: Float32Array): Float32Array {
  const sum = new Float32Array(left.length);
  for (let i = 0; i < sum.length; i++) sum[i] = left[i] + right[i];
  return sum;
}

/** Rows of a matrix of this width, as views. */
export function rowsOf(matrix: Float32Array, width: number): Float32Array[] {
  return Array.from({ length: matrix.length / width }, (_, row) => matrix.subarray(row * width, (row + 1) * width));
}

/** Vectors as one matrix, or parts as one vector. */
export function concatenate(parts: readonly Float32Array[]): Float32Array {
  const result = new Float32Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}

/** (rows, columns) → (columns, rows). */
export function transpose(matrix: Float32Array, columns: number): Float32Array {
  const rows = matrix.length / columns;
  const result = new Float32Array(matrix.length);
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) result[column * rows + row] = matrix[row * columns + column];
  return result;
}

export function tanh(values: Float32Array): Float32Array {
  return values.map(Math.tanh);
}

export function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value));
}

/** The error function, by its series near 0 and a continued fraction far from it; exact to single precision. */
export function erf(x: number): number {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let [term, sum] = [x, x];
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum) && n < 100; n++) {
      term *= -(x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-x * x) / (Math.sqrt(Math.PI) * (size + fraction)));
}
