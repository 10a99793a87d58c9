<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ko_KR" sourcelanguage="en">
<context>
    <name>Actions</name>
    <message>
        <source>New chat</source>
        <translation>새 채팅</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>Unload the model</source>
        <translation>모델 내리기</translation>
    </message>
    <message>
        <source>Add a .gguf file</source>
        <translation>.gguf 파일 추가</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>답변 중지</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>다시 답하기</translation>
    </message>
    <message>
        <source>Switch the API server on or off</source>
        <translation>API 서버 켜기 또는 끄기</translation>
    </message>
    <message>
        <source>System prompt and sampling</source>
        <translation>시스템 프롬프트와 샘플링</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>채팅</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
    <message>
        <source>Search or run</source>
        <translation>검색 또는 실행</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>종료</translation>
    </message>
</context>
<context>
    <name>AnswerView</name>
    <message>
        <source>The answer broke off</source>
        <translation>답변이 중간에 끊겼습니다</translation>
    </message>
    <message>
        <source>The answer could not be written</source>
        <translation>답변을 쓰지 못했습니다</translation>
    </message>
</context>
<context>
    <name>CaptionLine</name>
    <message>
        <source>Copy the answer</source>
        <translation>답변 복사</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>다시 답하기</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>중지됨</translation>
    </message>
    <message>
        <source>Cut at the length limit</source>
        <translation>길이 제한에서 잘림</translation>
    </message>
    <message>
        <source>{speed} tok/s</source>
        <translation>{speed} tok/s</translation>
    </message>
    <message>
        <source>{tokens} tokens</source>
        <translation>{tokens}토큰</translation>
    </message>
    <message>
        <source>queue {seconds}</source>
        <translation>대기 {seconds}</translation>
    </message>
    <message>
        <source>load {seconds}</source>
        <translation>로드 {seconds}</translation>
    </message>
    <message>
        <source>prefill {seconds}</source>
        <translation>프리필 {seconds}</translation>
    </message>
    <message>
        <source>first token {seconds} s = {parts}</source>
        <translation>첫 토큰 {seconds}초 = {parts}</translation>
    </message>
</context>
<context>
    <name>ChatDelegate</name>
    <message>
        <source>Chat title</source>
        <translation>채팅 제목</translation>
    </message>
</context>
<context>
    <name>ChatHead</name>
    <message>
        <source>New chat</source>
        <translation>새 채팅</translation>
    </message>
    <message>
        <source>context {used} / {size}</source>
        <translation>컨텍스트 {used} / {size}</translation>
    </message>
    <message>
        <source>System prompt and sampling</source>
        <translation>시스템 프롬프트와 샘플링</translation>
    </message>
</context>
<context>
    <name>ChatList</name>
    <message>
        <source>Search chats</source>
        <translation>채팅 검색</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>새 채팅</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>채팅 목록</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>이름 바꾸기</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>삭제</translation>
    </message>
</context>
<context>
    <name>ChatListModel</name>
    <message>
        <source>New chat</source>
        <translation>새 채팅</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>오늘</translation>
    </message>
    <message>
        <source>Previous 7 days</source>
        <translation>지난 7일</translation>
    </message>
    <message>
        <source>Older</source>
        <translation>이전</translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Add a .gguf file</source>
        <translation>.gguf 파일 추가</translation>
    </message>
    <message>
        <source>What shall we talk about?</source>
        <translation>무엇을 이야기할까요?</translation>
    </message>
    <message>
        <source>Everything stays on this computer.</source>
        <translation>모든 내용은 이 컴퓨터에만 남습니다.</translation>
    </message>
    <message>
        <source>No models yet</source>
        <translation>아직 모델이 없습니다</translation>
    </message>
    <message>
        <source>A model is one .gguf file; Octavo runs it on this computer.</source>
        <translation>모델은 .gguf 파일 하나이며, Octavo가 이 컴퓨터에서 실행합니다.</translation>
    </message>
    <message>
        <source>Chat deleted.</source>
        <translation>채팅을 삭제했습니다.</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>실행 취소</translation>
    </message>
    <message>
        <source>{name} could not be loaded</source>
        <translation>{name} 모델을 로드하지 못했습니다</translation>
    </message>
    <message>
        <source>{name} stopped by itself</source>
        <translation>{name} 모델이 스스로 멈췄습니다</translation>
    </message>
</context>
<context>
    <name>ChatPanel</name>
    <message>
        <source>This chat</source>
        <translation>이 채팅</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>시스템 프롬프트</translation>
    </message>
    <message>
        <source>How the model should answer</source>
        <translation>모델이 어떻게 답해야 하는지 적어 주세요</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>샘플링</translation>
    </message>
    <message>
        <source>Back to the defaults</source>
        <translation>기본값으로</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>온도</translation>
    </message>
    <message>
        <source>Higher is more varied; 0 always takes the likeliest word.</source>
        <translation>높을수록 다양해지고, 0이면 항상 가장 가능성 높은 단어를 고릅니다.</translation>
    </message>
    <message>
        <source>Top P</source>
        <translation>Top P</translation>
    </message>
    <message>
        <source>Keep the likeliest words that share this much.</source>
        <translation>누적 확률이 이 값이 될 때까지 가능성 높은 단어만 남깁니다.</translation>
    </message>
    <message>
        <source>Min P</source>
        <translation>Min P</translation>
    </message>
    <message>
        <source>Drop words less likely than this share of the likeliest.</source>
        <translation>가장 가능성 높은 단어의 이 비율보다 낮은 단어는 버립니다.</translation>
    </message>
    <message>
        <source>Repeat penalty</source>
        <translation>반복 패널티</translation>
    </message>
    <message>
        <source>Above 1, words that were just used become less likely.</source>
        <translation>1보다 크면 방금 쓴 단어가 덜 나옵니다.</translation>
    </message>
</context>
<context>
    <name>CodeBlock</name>
    <message>
        <source>Copy</source>
        <translation>복사</translation>
    </message>
    <message>
        <source>Copy the code</source>
        <translation>코드 복사</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>코드</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>복사됨</translation>
    </message>
</context>
<context>
    <name>CommandPalette</name>
    <message>
        <source>Search or run</source>
        <translation>검색 또는 실행</translation>
    </message>
    <message>
        <source>Results</source>
        <translation>결과</translation>
    </message>
    <message numerus="yes">
        <source>%n result(s)</source>
        <translation>
            <numerusform>결과 %n개</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Write a message</source>
        <translation>메시지를 입력하세요</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>메시지</translation>
    </message>
    <message>
        <source>Enter sends, Shift+Enter breaks the line</source>
        <translation>Enter로 보내고 Shift+Enter로 줄을 바꿉니다</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>보내기</translation>
    </message>
    <message>
        <source>Stop</source>
        <comment>end an answer</comment>
        <translation>중지</translation>
    </message>
    <message>
        <source>Stop the answer (Esc)</source>
        <translation>답변 중지 (Esc)</translation>
    </message>
</context>
<context>
    <name>ConnectionNotice</name>
    <message>
        <source>Octavo&apos;s service stopped. It is being started again; what was written is kept.</source>
        <translation>Octavo 서비스가 멈춰서 다시 시작하고 있습니다. 작성된 내용은 보관됩니다.</translation>
    </message>
    <message>
        <source>Octavo&apos;s service does not start, trying again: {reason}</source>
        <translation>Octavo 서비스가 시작되지 않아 다시 시도하고 있습니다: {reason}</translation>
    </message>
</context>
<context>
    <name>Conversation</name>
    <message>
        <source>Show earlier messages</source>
        <translation>이전 메시지 보기</translation>
    </message>
    <message>
        <source>New text</source>
        <translation>새 텍스트</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>대화</translation>
    </message>
    <message>
        <source>Open this page of {host} in the browser?</source>
        <translation>{host} 페이지를 브라우저에서 열까요?</translation>
    </message>
    <message>
        <source>Open link</source>
        <translation>링크 열기</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>열기</translation>
    </message>
</context>
<context>
    <name>ErrorPanel</name>
    <message>
        <source>That didn&apos;t work</source>
        <translation>작업을 마치지 못했습니다</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>다시 시도</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>자세히</translation>
    </message>
    <message>
        <source>Copy the details</source>
        <translation>자세한 내용 복사</translation>
    </message>
</context>
<context>
    <name>Failures</name>
    <message>
        <source>The conversation is longer than the model&apos;s context.</source>
        <translation>대화가 모델의 컨텍스트보다 깁니다.</translation>
    </message>
    <message>
        <source>There is no such model in the library.</source>
        <translation>라이브러리에 그런 모델이 없습니다.</translation>
    </message>
    <message>
        <source>This chat is no longer there.</source>
        <translation>이 채팅은 더 이상 없습니다.</translation>
    </message>
    <message>
        <source>The file is not a sound GGUF model.</source>
        <translation>올바른 GGUF 모델 파일이 아닙니다.</translation>
    </message>
    <message>
        <source>The file can&apos;t be read.</source>
        <translation>파일을 읽을 수 없습니다.</translation>
    </message>
    <message>
        <source>There is already a file where this one should go.</source>
        <translation>이 파일이 놓일 자리에 이미 파일이 있습니다.</translation>
    </message>
    <message>
        <source>The model is answering and can&apos;t be unloaded now.</source>
        <translation>모델이 답변 중이라 지금은 내릴 수 없습니다.</translation>
    </message>
    <message>
        <source>The engine refused the model.</source>
        <translation>엔진이 모델을 거부했습니다.</translation>
    </message>
    <message>
        <source>The engine was built for another processor.</source>
        <translation>엔진이 다른 프로세서용으로 빌드되었습니다.</translation>
    </message>
    <message>
        <source>There isn&apos;t enough free memory for the model.</source>
        <translation>모델을 올릴 여유 메모리가 부족합니다.</translation>
    </message>
    <message>
        <source>The engine could not go on with the answer.</source>
        <translation>엔진이 답변을 계속하지 못했습니다.</translation>
    </message>
    <message>
        <source>The model&apos;s process ended by itself. It starts again with the next question.</source>
        <translation>모델 프로세스가 스스로 종료되었습니다. 다음 질문 때 다시 시작됩니다.</translation>
    </message>
    <message>
        <source>Too many requests are waiting.</source>
        <translation>대기 중인 요청이 너무 많습니다.</translation>
    </message>
    <message>
        <source>Octavo&apos;s service doesn&apos;t answer.</source>
        <translation>Octavo 서비스가 응답하지 않습니다.</translation>
    </message>
    <message>
        <source>Octavo&apos;s service ended unexpectedly while this was written. The text so far is kept.</source>
        <translation>이 답변을 쓰는 동안 Octavo 서비스가 예기치 않게 종료되었습니다. 그때까지 쓴 내용은 보관됩니다.</translation>
    </message>
    <message>
        <source>The model was unloaded while it answered.</source>
        <translation>답변하는 동안 모델이 메모리에서 내려졌습니다.</translation>
    </message>
    <message>
        <source>A file can&apos;t be written; the disk may be full.</source>
        <translation>파일을 쓸 수 없습니다. 디스크가 가득 찼을 수 있습니다.</translation>
    </message>
    <message>
        <source>The model&apos;s chat template could not be used.</source>
        <translation>모델의 채팅 템플릿을 쓸 수 없습니다.</translation>
    </message>
    <message>
        <source>That isn&apos;t possible at the moment.</source>
        <translation>지금은 할 수 없습니다.</translation>
    </message>
    <message>
        <source>Something unexpected happened.</source>
        <translation>예기치 않은 문제가 생겼습니다.</translation>
    </message>
</context>
<context>
    <name>MemoryStrip</name>
    <message>
        <source>No model loaded</source>
        <translation>로드된 모델 없음</translation>
    </message>
    <message>
        <source>KV</source>
        <translation>KV</translation>
    </message>
    <message>
        <source>{speed} tok/s</source>
        <translation>{speed} tok/s</translation>
    </message>
    <message>
        <source>In memory: {file} of the model file, {private} of its own (cache, buffers, program).</source>
        <translation>메모리 사용: 모델 파일 {file}, 자체 메모리 {private} (캐시, 버퍼, 프로그램).</translation>
    </message>
</context>
<context>
    <name>ModelListModel</name>
    <message>
        <source>can&apos;t be used</source>
        <translation>사용할 수 없음</translation>
    </message>
    <message>
        <source>loading {share} %</source>
        <translation>로드 중 {share}%</translation>
    </message>
    <message>
        <source>in memory</source>
        <translation>메모리에 있음</translation>
    </message>
    <message>
        <source>crashed</source>
        <translation>비정상 종료됨</translation>
    </message>
</context>
<context>
    <name>PasteRow</name>
    <message>
        <source>Pasted text · {count} characters</source>
        <translation>붙여 넣은 텍스트 · {count}자</translation>
    </message>
    <message>
        <source>Remove the pasted text</source>
        <translation>붙여 넣은 텍스트 제거</translation>
    </message>
</context>
<context>
    <name>PickerPill</name>
    <message>
        <source>Loading {share} %</source>
        <translation>로드 중 {share}%</translation>
    </message>
    <message>
        <source>Starting…</source>
        <translation>시작하는 중…</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>No model</source>
        <translation>모델 없음</translation>
    </message>
    <message>
        <source>Model: {name}</source>
        <translation>모델: {name}</translation>
    </message>
    <message>
        <source>Choose a model (Ctrl+L)</source>
        <translation>모델 선택 (Ctrl+L)</translation>
    </message>
</context>
<context>
    <name>PickerPopup</name>
    <message>
        <source>Models on this computer</source>
        <translation>이 컴퓨터의 모델</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Add a .gguf file</source>
        <translation>.gguf 파일 추가</translation>
    </message>
</context>
<context>
    <name>PortNotice</name>
    <message>
        <source>Switch on again</source>
        <translation>다시 켜기</translation>
    </message>
    <message>
        <source>Leave it off</source>
        <translation>꺼진 채로 두기</translation>
    </message>
    <message>
        <source>The API server was on at {address} and is off now. {reason}</source>
        <translation>{address}에서 켜져 있던 API 서버가 지금은 꺼져 있습니다. {reason}</translation>
    </message>
</context>
<context>
    <name>ProseView</name>
    <message>
        <source>Message text</source>
        <translation>메시지 내용</translation>
    </message>
</context>
<context>
    <name>QuestionView</name>
    <message>
        <source>{count} more characters</source>
        <translation>{count}자 더 있음</translation>
    </message>
    <message>
        <source>Your question</source>
        <translation>내 질문</translation>
    </message>
</context>
<context>
    <name>Rail</name>
    <message>
        <source>Chat</source>
        <translation>채팅</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
</context>
<context>
    <name>ServerCell</name>
    <message>
        <source>off</source>
        <translation>꺼짐</translation>
    </message>
    <message>
        <source>API {state}</source>
        <translation>API {state}</translation>
    </message>
    <message>
        <source>API server: {state}</source>
        <translation>API 서버: {state}</translation>
    </message>
    <message>
        <source>Close the port</source>
        <translation>포트 닫기</translation>
    </message>
    <message>
        <source>Open the port, so that other programs can use the model</source>
        <translation>다른 프로그램이 모델을 쓸 수 있도록 포트 열기</translation>
    </message>
</context>
<context>
    <name>SettingsPage</name>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>테마</translation>
    </message>
    <message>
        <source>System follows what your desktop is set to.</source>
        <translation>시스템을 고르면 데스크톱 설정을 따릅니다.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>언어</translation>
    </message>
    <message>
        <source>Changes at once, in every window.</source>
        <translation>모든 창에 바로 적용됩니다.</translation>
    </message>
    <message>
        <source>System</source>
        <translation>시스템</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>어둡게</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>밝게</translation>
    </message>
</context>
<context>
    <name>TableBlock</name>
    <message>
        <source>Table</source>
        <translation>표</translation>
    </message>
</context>
<context>
    <name>Toast</name>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
</context>
<context>
    <name>TopBar</name>
    <message>
        <source>Unload the model</source>
        <translation>모델 내리기</translation>
    </message>
    <message>
        <source>Search or run…</source>
        <translation>검색 또는 실행…</translation>
    </message>
    <message>
        <source>Search or run</source>
        <translation>검색 또는 실행</translation>
    </message>
</context>
<context>
    <name>Window</name>
    <message>
        <source>chat</source>
        <translation>채팅</translation>
    </message>
    <message>
        <source>model</source>
        <translation>모델</translation>
    </message>
</context>
<context>
    <name>WritingLine</name>
    <message>
        <source>Waiting for the model</source>
        <translation>모델을 기다리는 중</translation>
    </message>
    <message>
        <source>Reading prompt…</source>
        <translation>프롬프트 읽는 중…</translation>
    </message>
    <message>
        <source>Loading model {share} %</source>
        <translation>모델 로드 중 {share}%</translation>
    </message>
    <message>
        <source>{done}/{total} tokens</source>
        <translation>{done}/{total}토큰</translation>
    </message>
    <message>
        <source>Reading prompt</source>
        <translation>프롬프트 읽는 중</translation>
    </message>
    <message>
        <source>{speed} tok/s · {tokens} tokens</source>
        <translation>{speed} tok/s · {tokens}토큰</translation>
    </message>
    <message>
        <source>Writing</source>
        <translation>생성 중</translation>
    </message>
    <message>
        <source>Connection lost, joining again</source>
        <translation>연결이 끊겨 다시 연결하는 중</translation>
    </message>
    <message>
        <source>Esc stops</source>
        <translation>Esc로 중지</translation>
    </message>
</context>
</TS>
