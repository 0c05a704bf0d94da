"""Fast kernels for training. Each kernel has a plain twin: the same computation with torch's operations.

    kernel                       on the CPU                             on any other device
    dropout.draw_mask            `byte_mask`: bytes of numpy's SFC64    `plain_mask`: torch's bernoulli_
    cross_entropy.sequence_loss  `fused_sequence_loss`, in chunks       the same, in larger chunks
    recurrent.run_layer          `fast_run_layer`, gradients by hand    `plain_run_layer`: torch's layer
    recurrent.encode_layer       `fast_encode_layer`, by hand too       `plain_encode_layer`: packed sequences
    bahdanau.run_decoder         all steps, gradients by hand           `AttendBefore` in models/recurrent.py,
                                                                        one attention and one cell per step

`draw_mask`, `run_layer` and `encode_layer` decide whether the kernel or the twin runs. For
`bahdanau.run_decoder`, `AttendBefore.forward` decides. `sequence_loss` always runs its kernel: the twin,
`plain_sequence_loss`, is only for tests. In some cases the twin runs on the CPU too:

- `draw_mask`: outside `seed_dropout`.
- The three recurrent kernels: with autocast, and without gradients, because these kernels only make the
  backward pass faster.
- `run_layer`: also over a single step.
- `run_decoder`: also if neither `Additive` nor `LuongConcat` attends, and if weights are collected or edited.

Tests compare the results and the gradients of every kernel except `draw_mask` with those of its twin. Masks
are random, so for `draw_mask` the tests check the share of zeros and the scale. Tests run the code for
accelerators on a simulated device (tests/device).
"""
