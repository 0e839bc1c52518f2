"""What only a card can do, and what stands for it in numba's simulator, which has no warps.

Threads go in warps of `LANES`; in the simulator a warp is one thread, so that the same kernels run
without a card, slowly.
"""

from __future__ import annotations

from typing import Any

from numba import config, cuda

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # type: ignore[attr-defined]  # few networks are no fault of the user's
SIMULATED = bool(config.ENABLE_CUDASIM)  # type: ignore[attr-defined]
LANES = 1 if SIMULATED else 32

if SIMULATED:

    def load4(flat: Any, place: int) -> Any:
        """Four numbers that lie side by side."""
        return flat[place], flat[place + 1], flat[place + 2], flat[place + 3]

    def warp_sum(value: Any) -> Any:
        """Sum over the lanes of a warp, for every one of them."""
        return value

else:
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.core.extending import intrinsic

    @intrinsic(target="cuda")
    def load4(typingctx, flat, place):  # type: ignore[no-untyped-def]
        """Four numbers that lie side by side, in loads of 128 bits: memory speed needs them.

        numba has no such load for arrays of numbers; `place` must be a multiple of four.
        """
        signature = types.UniTuple(flat.dtype, 4)(flat, place)  # type: ignore[no-untyped-call]

        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            array = context.make_array(signature.args[0])(context, builder, args[0])
            number = context.get_data_type(signature.args[0].dtype)
            wide = 16 * 8 // (32 if number == ir.FloatType() else 64)
            vector = ir.VectorType(number, wide)
            found = []
            for part in range(0, 4, wide):
                at = builder.add(args[1], context.get_constant(signature.args[1], part))
                start = builder.bitcast(builder.gep(array.data, [at]), vector.as_pointer())
                loaded = builder.load(start, align=16)
                for lane in range(wide):
                    index = ir.Constant(ir.IntType(32), lane)
                    found.append(builder.extract_element(loaded, index))
            return cgutils.pack_array(builder, found)  # type: ignore[no-untyped-call]

        return signature, generate

    @cuda.jit(device=True)
    def warp_sum(value):  # type: ignore[no-untyped-def]
        """Sum over the lanes of a warp, for every one of them."""
        for distance in (16, 8, 4, 2, 1):
            value += cuda.shfl_xor_sync(0xFFFFFFFF, value, distance)
        return value
