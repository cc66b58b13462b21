; Counts in the memory that the threads of a program share, for shared_counts.py.
;
; Triton has no atomic operations there. Its own histogram compares each element with each bin instead, which
; takes several times longer than reading the elements.

@tdbg_counts = internal unnamed_addr addrspace(3) global [2048 x i32] poison, align 16

define i32 @tdbg_clear(i32 %bin) alwaysinline nounwind {
  %at = getelementptr inbounds [2048 x i32], ptr addrspace(3) @tdbg_counts, i32 0, i32 %bin
  store i32 0, ptr addrspace(3) %at
  ret i32 0
}

define i32 @tdbg_count(i32 %bin) alwaysinline nounwind {
  %at = getelementptr inbounds [2048 x i32], ptr addrspace(3) @tdbg_counts, i32 0, i32 %bin
  %before = atomicrmw add ptr addrspace(3) %at, i32 1 monotonic
  ret i32 0
}

define i32 @tdbg_counted(i32 %bin) alwaysinline nounwind {
  %at = getelementptr inbounds [2048 x i32], ptr addrspace(3) @tdbg_counts, i32 0, i32 %bin
  %n = load i32, ptr addrspace(3) %at
  ret i32 %n
}
